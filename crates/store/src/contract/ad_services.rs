//! Redeeming AdServices tokens with Apple, and the effect of Apple's response on attribution.

use super::fixtures::{SharedStore, at, is_due};
use super::sdk_fixtures::{Tenant, tenant};
use crate::{LeasedToken, TokenOutcome};
use tributary_domain::attribution::MatchType;
use tributary_domain::attribution::ad_services::{AdServices, AdServicesRecord};
use tributary_domain::device::Platform;
use tributary_domain::due_work::WorkKind;
use tributary_domain::install::ConfigureCommand;

async fn lease(store: &SharedStore, now: i64) -> Vec<LeasedToken> {
    let leased = store.lease_ad_services_tokens(at(now), at(now + 30), 10);
    leased.await.expect("tokens are leased")
}

fn with_token(tenant: &Tenant, key: &str) -> ConfigureCommand {
    let mut command = tenant.configure(key, 60);
    command.traits.platform = Platform::Ios;
    command.ad_services_token = Some(format!("token of {key}"));
    command
}

/// A token is leased to one worker, retried, and settled once.
pub async fn a_token_is_leased_to_one_worker(store: &SharedStore) {
    let tenant = tenant(store).await;
    tenant.call_configure(with_token(&tenant, "device-1")).await;
    tenant.call_configure(with_token(&tenant, "device-1")).await;
    assert!(lease(store, 59).await.is_empty(), "not due yet");
    assert!(!is_due(store, WorkKind::Tokens, 59).await);
    assert!(is_due(store, WorkKind::Tokens, 60).await);
    let leased = lease(store, 60).await;
    assert_eq!(leased.len(), 1);
    let first = leased[0].clone();
    assert_eq!(
        (first.token.as_str(), first.attempts),
        ("token of device-1", 0)
    );
    assert_eq!(first.received_at, at(60));
    assert!(lease(store, 61).await.is_empty(), "the token is leased");
    assert!(!is_due(store, WorkKind::Tokens, 61).await);
    let again = lease(store, 90).await;
    assert_eq!(again[0].attempts, 1, "the first lease ended");
    let settle = async |lease: LeasedToken, outcome: TokenOutcome| {
        let settled = store.settle_ad_services_token(lease, outcome, at(91));
        settled.await.expect("a token is settled")
    };
    assert!(
        !settle(first, TokenOutcome::Final(AdServices::Invalid)).await,
        "the lease was lost"
    );
    assert!(settle(again[0].clone(), TokenOutcome::RetryAt(at(200))).await);
    assert!(lease(store, 199).await.is_empty());
    let last = lease(store, 200).await;
    assert_eq!(last[0].attempts, 2);
    assert!(
        settle(
            last[0].clone(),
            TokenOutcome::Final(AdServices::NotAttributed)
        )
        .await
    );
    assert!(lease(store, 9_000).await.is_empty());
    let known = tenant.device_details("device-1").await.state;
    let decision = known
        .attribution
        .expect("the device has a decision")
        .decision;
    assert_eq!(
        decision.evidence.ad_services.as_deref(),
        Some("not_attributed")
    );
    assert_eq!(decision.match_type, MatchType::Organic);
    tenant.call_configure(with_token(&tenant, "device-1")).await;
    assert!(
        lease(store, 9_000).await.is_empty(),
        "Apple has already responded"
    );
}

/// Apple's response attributes an organic install to Apple Ads and recredits the device's events.
pub async fn apples_answer_improves_an_organic_install(store: &SharedStore) {
    let tenant = tenant(store).await;
    tenant.call_configure(with_token(&tenant, "device-1")).await;
    assert_eq!(tenant.figures_of("organic").await.organic_installs, 1);
    let leased = lease(store, 60).await;
    let record = AdServicesRecord {
        campaign_id: Some("542370539".to_owned()),
        ..AdServicesRecord::default()
    };
    let tap = TokenOutcome::Final(AdServices::Tap(Box::new(record)));
    store
        .settle_ad_services_token(leased[0].clone(), tap, at(61))
        .await
        .expect("a token is settled");
    let answered = tenant
        .call_configure(tenant.configure("device-1", 70))
        .await;
    assert_eq!(
        answered.attribution.decision.match_type,
        MatchType::AdServices
    );
    assert_eq!(answered.attribution.revision, 2);
    assert_eq!(
        tenant.log("device-1").await,
        [("install".to_owned(), Some("apple_ads".to_owned()))]
    );
    let (organic, apple) = (
        tenant.figures_of("organic").await,
        tenant.figures_of("apple_ads").await,
    );
    assert_eq!(
        (organic.installs, organic.organic_installs, apple.installs),
        (0, 0, 1)
    );
}
