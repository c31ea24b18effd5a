//! Ownership of link domains and App Store ids.

use super::fixtures::{SharedStore, app, organization, origin, refusal};
use super::postback_fixtures::{
    AdvertisedApp, advertised_app, advertised_app_with_id, arrival, total,
};
use crate::PostbackOutcome;
use tributary_domain::app::{App, AppChange};
use tributary_domain::ownership::store_id::StoreIdProof;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::web_url::HostName;

fn link_domain(host: &str) -> AppChange {
    AppChange {
        link_domain: Change::Set(HostName::parse(host).expect("a host")),
        ..AppChange::default()
    }
}

/// Several organizations may claim a domain. The first app that verifies it owns it, and serves its
/// links and association files alone. The operator can release it.
pub async fn a_link_domain_belongs_to_the_first_app_that_verifies_it(store: &SharedStore) {
    let (squatter, owner) = (organization(store).await, organization(store).await);
    let first = app(store, &squatter).await;
    let second = app(store, &owner).await;
    let host = HostName::parse("go.example.com").expect("a host");
    for (caller, app) in [(&squatter, first.id), (&owner, second.id)] {
        let change = link_domain("go.example.com");
        let claimed = store.update_app(caller, app, change, Precondition::None, origin(2));
        let claimed = claimed.await.expect("several claims are allowed");
        assert_eq!(claimed.verified_link_domain(), None);
    }
    let owners = async || {
        let apps = store.apps_for_host(Some(host.clone())).await;
        let apps: Vec<AppId> = apps.expect("apps").iter().map(|app| app.id).collect();
        apps
    };
    assert_eq!(owners().await, []);
    let at_the_service = store.apps_for_host(None).await.expect("apps");
    assert!(at_the_service.iter().any(|app| app.id == second.id));
    let set = |caller, app, is_verified| {
        let host = host.clone();
        store.set_link_domain_verified(caller, app, host, is_verified, origin(3))
    };
    let verified = set(&owner, second.id, true).await.expect("not owned yet");
    assert_eq!(verified.verified_link_domain(), Some(&host));
    let stored = store.app(&owner.read_access(), second.id).await;
    assert_eq!(stored.expect("the app"), verified);
    assert_eq!(owners().await, [second.id]);
    let taken = set(&squatter, first.id, true).await;
    assert_eq!(refusal(taken), Refusal::DomainTaken);
    assert_eq!(owners().await, [second.id]);
    set(&owner, second.id, false).await.expect("released");
    set(&squatter, first.id, true).await.expect("free again");
    assert_eq!(owners().await, [first.id]);
}

/// A domain is verified for the app that has it, and in its own organization only.
pub async fn only_the_current_link_domain_can_be_verified(store: &SharedStore) {
    let (caller, stranger) = (organization(store).await, organization(store).await);
    let app = app(store, &caller).await;
    let verify = |caller, host: &str| {
        let host = HostName::parse(host).expect("a host");
        store.set_link_domain_verified(caller, app.id, host, true, origin(2))
    };
    let missing = verify(&caller, "go.example.com").await;
    assert_eq!(refusal(missing), Refusal::VersionConflict);
    let change = link_domain("go.example.com");
    let claimed = store.update_app(&caller, app.id, change, Precondition::None, origin(2));
    claimed.await.expect("a claim");
    let other = verify(&caller, "go.example.org").await;
    assert_eq!(refusal(other), Refusal::VersionConflict);
    let foreign = verify(&stranger, "go.example.com").await;
    assert_eq!(refusal(foreign), Refusal::AppNotFound);
    verify(&caller, "go.example.com").await.expect("verified");
}

fn app_store_id(id: &str) -> AppChange {
    AppChange {
        ios_app_store_id: Change::Set(id.to_owned()),
        ..AppChange::default()
    }
}

/// Organizations may claim the same App Store id until one of them proves that it owns the id.
pub async fn an_app_store_id_belongs_to_the_organization_that_proves_it(store: &SharedStore) {
    let (one, other) = (organization(store).await, organization(store).await);
    let third = organization(store).await;
    let (first, second) = (app(store, &one).await, app(store, &other).await);
    let (sibling, late) = (app(store, &one).await, app(store, &third).await);
    let take = |caller, app: &App| {
        store.update_app(
            caller,
            app.id,
            app_store_id("42"),
            Precondition::None,
            origin(2),
        )
    };
    take(&one, &first).await.expect("the first claim");
    take(&one, &first).await.expect("the app keeps the id");
    assert_eq!(refusal(take(&one, &sibling).await), Refusal::StoreIdTaken);
    let stored = store.app(&one.read_access(), sibling.id).await;
    assert_eq!(stored.expect("the app"), sibling);
    take(&other, &second).await.expect("claims may coexist");
    let prove = |app: &App, proof| store.prove_store_id(app.id, "42", proof, origin(3));
    let notification = StoreIdProof::Notification;
    assert!(!prove(&late, notification).await.expect("no claim"));
    assert!(prove(&second, notification).await.expect("proven"));
    assert!(!prove(&second, notification).await.expect("proven before"));
    assert!(!prove(&first, notification).await.expect("too late"));
    assert_eq!(refusal(take(&third, &late).await), Refusal::StoreIdTaken);
    take(&one, &first).await.expect("an earlier claim stays");
    let operator = StoreIdProof::Operator;
    assert!(prove(&first, operator).await.expect("decided"));
    assert!(prove(&second, operator).await.expect("decided again"));
}

async fn accept(store: &SharedStore, one: &AdvertisedApp, seconds: i64) -> PostbackOutcome {
    let accepted = store.accept_postback(arrival(one.store_id, seconds)).await;
    accepted.expect("the postback is accepted")
}

async fn prove(store: &SharedStore, one: &AdvertisedApp) {
    let (id, proof) = (one.store_id.to_string(), StoreIdProof::Notification);
    let proven = store.prove_store_id(one.app, &id, proof, origin(20)).await;
    assert!(proven.expect("evidence"));
}

/// Postbacks of an id that several organizations claim without evidence wait for a proof.
pub async fn postbacks_of_a_contested_id_wait_for_the_proof(store: &SharedStore) {
    let squatter = advertised_app(store).await;
    let owner = advertised_app_with_id(store, squatter.store_id).await;
    assert_eq!(accept(store, &owner, 1).await, PostbackOutcome::Unclaimed);
    assert_eq!(store.claim_postbacks(10).await.expect("nothing"), 0);
    prove(store, &owner).await;
    assert_eq!(total(store, &owner).await.0, 1, "the waiting one");
    assert_eq!(accept(store, &owner, 3).await, PostbackOutcome::Stored);
    assert_eq!(total(store, &owner).await.0, 2);
    assert_eq!(total(store, &squatter).await.0, 0);
}

/// An app that received a genuine postback keeps the postbacks when another organization claims its
/// id, until that organization proves its claim.
pub async fn a_later_claim_does_not_divert_postbacks(store: &SharedStore) {
    let first = advertised_app(store).await;
    accept(store, &first, 1).await;
    let later = advertised_app_with_id(store, first.store_id).await;
    assert_eq!(accept(store, &first, 2).await, PostbackOutcome::Stored);
    assert_eq!(total(store, &first).await.0, 2);
    prove(store, &later).await;
    accept(store, &first, 4).await;
    assert_eq!(total(store, &first).await.0, 2, "stored postbacks stay");
    assert_eq!(total(store, &later).await.0, 1);
}

/// An app that changes its App Store id gives up its claim and its evidence.
pub async fn a_claim_ends_with_its_id(store: &SharedStore) {
    let (squatter, other) = (advertised_app(store).await, advertised_app(store).await);
    accept(store, &other, 1).await;
    let own = squatter.store_id.to_string();
    for id in [other.store_id.to_string(), own.clone()] {
        let change = app_store_id(&id);
        let changed = store.update_app(
            &squatter.writer,
            squatter.app,
            change,
            Precondition::None,
            origin(2),
        );
        changed.await.expect("another id");
        assert_eq!(accept(store, &other, 3).await, PostbackOutcome::Stored);
    }
    assert_eq!(total(store, &other).await.0, 3);
    assert_eq!(total(store, &squatter).await.0, 0);
    assert_eq!(accept(store, &squatter, 5).await, PostbackOutcome::Stored);
}
