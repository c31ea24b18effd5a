//! The stricter of an event's consent and the device's holds, whenever the event is planned or sent.

use super::duplicates::forwarding_shop;
use super::fixtures::{SharedStore, at};
use super::outbox_fixtures::{ForwardingApp, LEASE, connected, forwarding_app, settled};
use super::sdk_fixtures::{event, payment};
use super::web_events::purchase;
use tributary_domain::device::{Consent, Tracking};
use tributary_domain::event::sdk::{SdkEvent, SdkEventOutcome};
use tributary_domain::event::{Event, EventSource};
use tributary_domain::forwarding::lifecycle::{CONSENT_WITHDRAWN, NextStep};
use tributary_domain::forwarding::{AttemptVerdict, Conversion, Sharing, SkipReason};
use tributary_domain::integration::{EventScope, IntegrationChange, Network};
use tributary_domain::vocabulary::change::Change;

const PHONE: &str = "phone";

/// The user agreed to everything.
const GRANTED: Consent = Consent {
    ad_user_data: Some(true),
    ad_personalization: Some(true),
    tracking: Some(Tracking::Authorized),
};
/// The user refused everything.
const REFUSED: Consent = Consent {
    ad_user_data: Some(false),
    ad_personalization: Some(false),
    tracking: Some(Tracking::Denied),
};
/// The user was not asked.
const NOT_ASKED: Consent = Consent {
    ad_user_data: None,
    ad_personalization: None,
    tracking: None,
};

fn tracked(id: &str, seconds: i64, consent: Option<Consent>) -> SdkEvent {
    SdkEvent {
        consent,
        ..event(id, "sign_up", seconds)
    }
}

impl ForwardingApp {
    async fn track(&self, event: SdkEvent, seconds: i64) -> SdkEventOutcome {
        let arrival = self.tenant.arrival(PHONE, seconds);
        let accepted = self.tenant.store.accept_sdk_events(arrival, vec![event]);
        accepted.await.expect("events are accepted")[0]
    }

    /// Calls `configure` again, with this consent.
    async fn set_consent(&self, consent: Consent, seconds: i64) {
        let mut command = self.tenant.configure(PHONE, seconds);
        command.consent = consent;
        self.tenant.call_configure(command).await;
    }

    /// Configures a device with a consent. Its install is credited to Meta (`network_a`).
    async fn install(&self, consent: Consent, seconds: i64) {
        let click = self.tenant.record_click(seconds - 1).await;
        let mut command = self.tenant.configure_with_click(PHONE, &click, seconds);
        command.consent = consent;
        self.tenant.call_configure(command).await;
    }

    async fn stored_event(&self, id: &str) -> Event {
        let log = self.log().await.into_iter();
        let mut found = log.filter(|event| event.external_id == id);
        found.next().expect("an event")
    }

    /// Returns the conversions that are due, as they would be sent.
    async fn due_conversions(&self, seconds: i64) -> Vec<Conversion> {
        let leased = self.lease(LEASE, seconds, seconds + 100).await;
        leased.expect("a lease");
        let taken = self.take_due(LEASE, seconds).await.expect("deliveries");
        let gathered = self.tenant.store.gather_conversions(self.queue, taken);
        let gathered = gathered.await.expect("conversions").into_iter();
        gathered.filter_map(|one| one.conversion).collect()
    }
}

fn pending(id: &str) -> (String, &'static str, Option<String>) {
    (id.to_owned(), "pending", None)
}

fn withdrawn(id: &str) -> (String, &'static str, Option<String>) {
    let reason = Some(CONSENT_WITHDRAWN.to_owned());
    (id.to_owned(), "cancelled", reason)
}

const SKIPPED: [(Network, SkipReason); 1] = [(Network::A, SkipReason::Consent)];

/// An event keeps the consent that it was tracked with. A duplicate changes nothing.
pub async fn an_event_keeps_its_consent(store: &SharedStore) {
    let one = forwarding_app(store).await;
    let partial = Consent {
        ad_personalization: Some(false),
        ..NOT_ASKED
    };
    let consents = [
        ("older-sdk", None),
        ("not-asked", Some(NOT_ASKED)),
        ("granted", Some(GRANTED)),
        ("refused", Some(REFUSED)),
        ("partial", Some(partial)),
    ];
    for (id, consent) in consents {
        let outcome = one.track(tracked(id, 10, consent), 10).await;
        assert_eq!(outcome, SdkEventOutcome::Accepted);
    }
    for (id, _) in consents {
        let outcome = one.track(tracked(id, 10, Some(REFUSED)), 11).await;
        assert_eq!(outcome, SdkEventOutcome::Duplicate);
    }
    for (id, consent) in consents {
        assert_eq!(one.stored_event(id).await.consent, consent, "{id}");
    }
}

/// An event that was tracked after a refusal is not planned, even if the device's refusal arrives
/// later than the event, or the user agrees later.
pub async fn an_event_of_a_refusing_user_is_not_planned(store: &SharedStore) {
    let one = forwarding_app(store).await;
    // The event arrives before the first `configure` call, which credits it.
    one.track(tracked("early", 8, Some(REFUSED)), 8).await;
    one.install(GRANTED, 10).await;
    one.track(tracked("refused", 11, Some(REFUSED)), 11).await;
    one.track(tracked("granted", 12, Some(GRANTED)), 12).await;
    one.track(tracked("older-sdk", 13, None), 13).await;
    let planned = ["granted", "install", "older-sdk"].map(pending);
    assert_eq!(one.delivery_statuses().await, planned);
    for id in ["early", "refused"] {
        assert_eq!(one.stored_event(id).await.skipped, SKIPPED, "{id}");
    }
    // A later click credits the device's events again.
    one.set_consent(GRANTED, 14).await;
    one.install(GRANTED, 20).await;
    assert_eq!(one.delivery_statuses().await, planned);
}

/// The install of a user who refuses at the first start is not planned, even if the user agrees
/// before the install is credited again.
pub async fn an_install_keeps_its_refusal(store: &SharedStore) {
    let one = forwarding_app(store).await;
    one.set_consent(REFUSED, 10).await;
    one.set_consent(GRANTED, 11).await;
    one.install(GRANTED, 20).await;
    let log = one.log().await;
    let install = log.iter().find(|event| event.is_service_install);
    assert_eq!(install.expect("the install").consent, Some(REFUSED));
    assert_eq!(one.delivery_statuses().await, []);
    one.track(tracked("granted", 21, Some(GRANTED)), 21).await;
    let statuses = one.delivery_statuses().await;
    assert!(
        statuses.iter().all(|one| one.0 == "granted"),
        "{statuses:?}"
    );
}

/// A withdrawal cancels the device's pending deliveries at once. They stay cancelled after the user
/// agrees again. Events from websites are not affected, because their sender asks for consent.
pub async fn a_withdrawal_cancels_pending_deliveries(store: &SharedStore) {
    let (one, click) = forwarding_shop(store).await;
    one.track(tracked("older-sdk", 100, None), 100).await;
    one.track(tracked("granted", 101, Some(GRANTED)), 101).await;
    let mut bought = purchase(&click, "web", "10");
    bought.device = one.tenant.arrival(PHONE, 102).device;
    one.post_web_event(bought).await;
    let planned = ["granted", "install", "older-sdk", "web"].map(pending);
    assert_eq!(one.delivery_statuses().await, planned);
    one.set_consent(GRANTED, 103).await;
    assert_eq!(one.delivery_statuses().await, planned, "nothing changes");
    one.set_consent(REFUSED, 104).await;
    let mut cancelled = ["granted", "install", "older-sdk"].map(withdrawn).to_vec();
    cancelled.push(pending("web"));
    assert_eq!(one.delivery_statuses().await, cancelled);
    one.set_consent(GRANTED, 105).await;
    one.track(tracked("later", 106, Some(GRANTED)), 106).await;
    cancelled.insert(2, pending("later"));
    assert_eq!(one.delivery_statuses().await, cancelled);
    // Credited again.
    one.attribute_install(PHONE, 200).await;
    assert_eq!(one.delivery_statuses().await, cancelled);
}

/// A first `configure` call with a refusal cancels what was planned for earlier events.
pub async fn a_refusal_in_the_first_call_cancels_deliveries(store: &SharedStore) {
    let one = forwarding_app(store).await;
    let off = IntegrationChange {
        enabled: Change::Set(false),
        ..IntegrationChange::default()
    };
    one.change(Network::A, off, 5).await;
    let all_events = IntegrationChange {
        scope: Change::Set(EventScope::All),
        ..connected(Network::D)
    };
    one.change(Network::D, all_events, 5).await;
    one.track(tracked("early", 8, None), 8).await;
    assert_eq!(one.delivery_statuses().await, [pending("early")]);
    one.install(REFUSED, 10).await;
    assert_eq!(one.delivery_statuses().await, [withdrawn("early")]);
    one.install(GRANTED, 20).await;
    assert_eq!(one.delivery_statuses().await, [withdrawn("early")]);
}

/// A delivery that is being sent when consent is withdrawn is refused before its next attempt.
pub async fn a_withdrawal_refuses_the_next_attempt(store: &SharedStore) {
    let one = forwarding_app(store).await;
    one.install(GRANTED, 10).await;
    one.lease(LEASE, 20, 2_000).await.expect("a lease");
    let taken = one.take_due(LEASE, 20).await.expect("deliveries");
    assert_eq!(taken.len(), 1);
    one.set_consent(REFUSED, 21).await;
    assert_eq!(one.delivery_statuses().await, [pending("install")]);
    let next = NextStep::Wait {
        due_at: at(30),
        ambiguous_since: None,
    };
    let attempt = settled(&taken[0], AttemptVerdict::Retry, next, at(22));
    assert!(one.settle(LEASE, one.settlement(vec![attempt], 22)).await);
    let again = one.take_due(LEASE, 31).await.expect("deliveries");
    let gathered = store.gather_conversions(one.queue, again).await;
    let gathered = gathered.expect("conversions");
    let conversion = gathered[0].conversion.as_ref().expect("its event");
    assert_eq!(conversion.sharing(), Sharing::Refused);
}

/// What is sent follows the stricter consent, field by field.
pub async fn the_stricter_consent_is_sent(store: &SharedStore) {
    let one = forwarding_app(store).await;
    one.install(NOT_ASKED, 10).await;
    let no_personal_ads = Consent {
        ad_user_data: Some(true),
        ad_personalization: Some(false),
        tracking: None,
    };
    let consents = [
        ("a-older-sdk", None),
        ("b-granted", Some(GRANTED)),
        ("c-not-asked", Some(NOT_ASKED)),
        ("d-no-personal-ads", Some(no_personal_ads)),
    ];
    for (id, consent) in consents {
        one.track(tracked(id, 11, consent), 11).await;
    }
    one.set_consent(GRANTED, 12).await;
    let mut conversions = one.due_conversions(20).await;
    conversions.retain(|one| !one.event.is_service_install);
    conversions.sort_by_key(|one| one.event.external_id.clone());
    let found = conversions.iter().map(|one| {
        let device = one.device.as_ref().expect("the device");
        (one.sharing(), one.has_explicit_consent(), device.consent)
    });
    let no_tracking = Consent {
        tracking: None,
        ..no_personal_ads
    };
    let expected = [
        (Sharing::Allowed, true, GRANTED),
        (Sharing::Allowed, true, GRANTED),
        (Sharing::Unknown, false, NOT_ASKED),
        (Sharing::NotPersonalized, true, no_tracking),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

/// A billing provider's event takes over the refusal that the app reported with the same payment.
pub async fn a_billing_event_takes_over_the_consent(store: &SharedStore) {
    let (one, _) = forwarding_shop(store).await;
    let refused = SdkEvent {
        consent: Some(REFUSED),
        ..payment("t1", "9", "USD", 100)
    };
    one.report_sdk_event(PHONE, refused).await;
    one.notify(one.paid(PHONE, "t1", 110)).await;
    one.notify(one.paid(PHONE, "t2", 111)).await;
    let billed = one.billing_event("t1").await;
    assert_eq!(billed.consent, Some(REFUSED));
    assert_eq!(billed.skipped, SKIPPED);
    assert_eq!(one.deliveries_of_event(&billed).await, []);
    let sdk = one.event(EventSource::Sdk, "t1").await;
    assert_eq!(sdk.duplicate_of, Some(billed.id));
    let other = one.billing_event("t2").await;
    assert_eq!(other.consent, None);
    assert_ne!(other.skipped, SKIPPED);
    // Credited again.
    one.attribute_install(PHONE, 300).await;
    assert_eq!(one.deliveries_of_event(&billed).await, []);
}
