//! Ownership of link domains.

use super::fixtures::{SharedStore, app, organization, origin, refusal};
use tributary_domain::app::AppChange;
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
        let claimed = claimed.await.expect("claims exclude nobody");
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
