//! Proof that a device runs the genuine app, and what is forwarded without it.

use super::fixtures::SharedStore;
use super::outbox_fixtures::{ForwardingApp, forwarding_app};
use super::sdk_fixtures::event;
use tributary_domain::attestation::{
    AttestationFailure, AttestationOutcome, AttestationPolicy, PresentedOutcome,
};
use tributary_domain::attribution::Flag;
use tributary_domain::forwarding::SkipReason;
use tributary_domain::install::Attribution;
use tributary_domain::integration::Network;

/// Second of the first call, long enough after the click.
const FIRST_OPEN: i64 = 60;

/// Calls `configure` with a credited click and the result of a check.
async fn call(
    one: &ForwardingApp,
    policy: AttestationPolicy,
    result: Option<Result<(), AttestationFailure>>,
    second: i64,
) -> Attribution {
    let tenant = &one.tenant;
    let mut command = tenant.configure("phone", second);
    if second == FIRST_OPEN {
        let click = tenant.record_click(1).await;
        command = tenant.configure_with_click("phone", &click, second);
    }
    command.attestation = PresentedOutcome { policy, result };
    tenant.call_configure(command).await.attribution
}

async fn send(one: &ForwardingApp, id: &str, second: i64, requires_attestation: bool) {
    let mut context = one.tenant.arrival("phone", second);
    context.requires_attestation = requires_attestation;
    let events = vec![event(id, "sign_up", second)];
    let accepted = one.tenant.store.accept_sdk_events(context, events);
    accepted.await.expect("events are accepted");
}

async fn stored(one: &ForwardingApp) -> Attribution {
    let details = one.tenant.device_details("phone").await;
    details.state.attribution.expect("a decision")
}

async fn skips(one: &ForwardingApp, id: &str) -> Vec<(Network, SkipReason)> {
    let log = one.log().await;
    let found = log.into_iter().find(|event| event.external_id == id);
    found.expect("an event").skipped
}

/// The outcome is stored with the decision, and a verified device stays verified.
pub async fn an_outcome_is_read_as_it_was_stored(store: &SharedStore) {
    let one = forwarding_app(store).await;
    let policy = AttestationPolicy::Flag;
    let first = call(&one, policy, None, FIRST_OPEN).await;
    assert_eq!(stored(&one).await, first);
    let outcome = |one: &Attribution| one.decision.evidence.attestation;
    assert_eq!(outcome(&first), Some(AttestationOutcome::Missing));
    assert!(first.decision.flags.contains(&Flag::AttestationMissing));

    let forged = call(&one, policy, Some(Err(AttestationFailure::WrongApp)), 70).await;
    assert_eq!(stored(&one).await, forged);
    let failed = AttestationOutcome::Failed(AttestationFailure::WrongApp);
    assert_eq!(outcome(&forged), Some(failed));
    assert!(forged.decision.flags.contains(&Flag::AttestationFailed));

    call(&one, policy, Some(Ok(())), 80).await;
    let verified = call(&one, policy, Some(Err(AttestationFailure::Malformed)), 90).await;
    assert_eq!(stored(&one).await, verified);
    assert_eq!(outcome(&verified), Some(AttestationOutcome::Verified));
    assert!(verified.decision.flags.is_empty());
    assert_eq!(verified.id, first.id);
}

/// If an app requires proof, nothing is forwarded before it; afterwards, earlier events are.
pub async fn events_wait_for_a_required_proof(store: &SharedStore) {
    let one = forwarding_app(store).await;
    let policy = AttestationPolicy::Require;
    send(&one, "before", 8, true).await;
    call(&one, policy, None, FIRST_OPEN).await;
    send(&one, "without", 61, true).await;
    assert_eq!(one.delivery_statuses().await, []);
    for id in ["before", "without"] {
        let skipped = [(Network::A, SkipReason::Attestation)];
        assert_eq!(skips(&one, id).await, skipped, "{id}");
    }
    call(&one, policy, Some(Ok(())), 70).await;
    send(&one, "with", 71, true).await;
    let pending = |id: &str| (id.to_owned(), "pending", None);
    let planned = ["before", "install", "with", "without"].map(pending);
    assert_eq!(one.delivery_statuses().await, planned);
    assert_eq!(skips(&one, "without").await, []);
}
