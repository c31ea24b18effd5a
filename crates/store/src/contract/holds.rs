//! Flagged installs that are held for a review.

use super::erasure_fixtures::billing_notification;
use super::fixtures::{
    SharedStore, assert_rebuild_changes_nothing, at, first_page, new_key, organization, origin,
    refusal,
};
use super::outbox_fixtures::{ForwardingApp, LEASE, forwarding_app};
use super::sdk_fixtures::payment;
use crate::{HeldInstall, HoldReviewCount, StoreResult};
use tributary_domain::access::{Authorized, Environment, InstallsReview, Permission, authorize};
use tributary_domain::app::FraudPolicy;
use tributary_domain::attribution::{Flag, HoldDecision, HoldFilter, HoldState};
use tributary_domain::audit::Action;
use tributary_domain::billing::{NotificationMeaning, PaymentClaim};
use tributary_domain::device::DeviceKey;
use tributary_domain::forwarding::SkipReason;
use tributary_domain::integration::Network;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::Figures;
use tributary_domain::report::cohort::{AGE_DAYS_MAX, CohortReportQuery};
use tributary_domain::vocabulary::page::PageRequest;

const DAY: i64 = 24 * 60 * 60;
/// Amount of a payment in micro-units.
const PAID: i64 = 10_000_000;

/// Creates an app that forwards to Meta (`network_a`) and holds flagged installs.
async fn holding_app(store: &SharedStore) -> ForwardingApp {
    let mut one = forwarding_app(store).await;
    one.tenant.app.attribution.fraud = FraudPolicy::Hold;
    one
}

fn device(name: &str) -> DeviceKey {
    DeviceKey::parse(name).expect("a device id")
}

impl ForwardingApp {
    /// Reports an SDK payment by the device.
    async fn pay(&self, name: &str, id: &str, seconds: i64) {
        let arrival = self.tenant.arrival(name, seconds);
        let events = vec![payment(id, "10", "USD", seconds)];
        let accepted = self.tenant.store.accept_sdk_events(arrival, events);
        accepted.await.expect("events are accepted");
    }

    /// Reports a payment by the device through a billing provider.
    async fn bill(&self, name: &str, id: &str, seconds: i64) {
        let start = NotificationMeaning::Payment(PaymentClaim::Start);
        let mut arrival = billing_notification(&self.tenant, id, "sub-1", seconds, start);
        arrival.content.subscriber.device = Some(device(name));
        let accepted = self.tenant.store.accept_notification(arrival).await;
        accepted.expect("a notification is stored");
    }

    fn reviewer(&self) -> Authorized<InstallsReview> {
        Authorized::operator(self.tenant.writer.organization())
    }

    async fn review(
        &self,
        name: &str,
        decision: HoldDecision,
        seconds: i64,
    ) -> StoreResult<HeldInstall> {
        let (app, at) = (self.queue.app, origin(seconds));
        let store = &self.tenant.store;
        store
            .review_install(&self.reviewer(), app, device(name), decision, at)
            .await
    }

    async fn review_all(&self, filter: HoldFilter, decision: HoldDecision) -> HoldReviewCount {
        let (app, at) = (self.queue.app, origin(1_000));
        let store = &self.tenant.store;
        let reviewer = self.reviewer();
        let reviewed = store.review_installs(&reviewer, app, filter, decision, at);
        reviewed.await.expect("installs are reviewed")
    }

    /// Returns the devices of held installs, newest first.
    async fn held(&self, filter: HoldFilter) -> Vec<String> {
        let (reader, app) = (self.reader(), self.queue.app);
        let store = &self.tenant.store;
        let page = store.held_installs(&reader, app, filter, first_page("500"));
        let held = page.await.expect("a list").items.into_iter();
        held.map(|held| held.device.key.as_str().to_owned())
            .collect()
    }

    /// Returns devices and net revenue by days since install.
    async fn cohorts(&self) -> Vec<(u8, i64, i64)> {
        let periods = vec![(at(-DAY), at(DAY))];
        let query = CohortReportQuery::new(periods, &[], AGE_DAYS_MAX, 1_000);
        let (reader, app) = (&self.tenant.reader, self.queue.app);
        let rows = self.tenant.store.cohorts(reader, app, query).await;
        let rows = rows.expect("cohorts are read").into_iter();
        let mut rows: Vec<_> = rows
            .map(|row| {
                let figures = row.figures;
                let net = figures.revenue_micros - figures.refunded_micros;
                (row.age, figures.devices, net)
            })
            .filter(|(_, devices, net)| (*devices, *net) != (0, 0))
            .collect();
        rows.sort_unstable();
        rows
    }

    /// Returns figures and cohorts. A rebuild must change neither.
    async fn counted(&self) -> (Figures, Vec<(u8, i64, i64)>) {
        let before = (
            self.tenant.figures_of("network_a").await,
            self.cohorts().await,
        );
        assert_rebuild_changes_nothing(&self.tenant.store).await;
        let after = (
            self.tenant.figures_of("network_a").await,
            self.cohorts().await,
        );
        assert_eq!(before, after);
        before
    }
}

/// Figures of a held install with payments: one click, and what is held.
fn held_figures(installs: i64, revenue: i64) -> Figures {
    Figures {
        clicks: 1,
        held_installs: installs,
        held_revenue_micros: revenue,
        ..Figures::default()
    }
}

/// A flagged install and its events count in their own figures and in no cohort, and are not
/// forwarded. A release moves the figures and plans the deliveries.
pub async fn a_held_install_counts_when_it_is_released(store: &SharedStore) {
    let one = holding_app(store).await;
    one.attribute_install("phone", 10).await;
    one.send_events("phone", &["s1"], "sign_up", 11).await;
    one.pay("phone", "p1", 12).await;
    one.bill("phone", "b1", DAY + 20).await;
    assert_eq!(one.counted().await, (held_figures(1, 2 * PAID), vec![]));
    assert_eq!(one.delivery_statuses().await, []);
    for event in one.log().await {
        assert_eq!(event.skipped, [(Network::A, SkipReason::Fraud)]);
    }
    let released = one.review("phone", HoldDecision::Release, 2 * DAY).await;
    let released = released.expect("an install is released");
    assert_eq!(released.attribution.hold_state(), Some(HoldState::Released));
    let (figures, cohorts) = one.counted().await;
    let normal = Figures {
        clicks: 1,
        installs: 1,
        sign_ups: 1,
        purchases: 2,
        events: 4,
        paying_devices: 1,
        revenue_micros: 2 * PAID,
        ..Figures::default()
    };
    assert_eq!(figures, normal);
    assert_eq!(cohorts, [(0, 1, PAID), (1, 1, PAID)]);
    let pending = |id: &str| (id.to_owned(), "pending", None);
    let planned = ["b1", "install", "p1", "s1"].map(pending);
    assert_eq!(one.delivery_statuses().await, planned);
    // A repeated decision changes nothing, and later events count at once.
    let again = one.review("phone", HoldDecision::Release, 3 * DAY).await;
    assert_eq!(again.expect("the same state"), released);
    one.pay("phone", "p2", 30).await;
    assert_eq!(one.counted().await.0.revenue_micros, 3 * PAID);
}

/// A rejected install counts nowhere, and neither do its later events.
pub async fn a_rejected_install_counts_nowhere(store: &SharedStore) {
    let one = holding_app(store).await;
    one.attribute_install("phone", 10).await;
    one.pay("phone", "p1", 12).await;
    let rejected = one.review("phone", HoldDecision::Reject, 20).await;
    rejected.expect("an install is rejected");
    one.pay("phone", "p2", 30).await;
    assert_eq!(one.counted().await, (held_figures(0, 0), vec![]));
    assert_eq!(one.delivery_statuses().await, []);
    assert_eq!(one.held(HoldFilter::of(HoldState::Held)).await.len(), 0);
    let rejected = HoldFilter::of(HoldState::Rejected);
    assert_eq!(one.held(rejected).await, ["phone"]);
}

/// Figures do not depend on the order in which the install, its events and the review arrive.
pub async fn the_order_of_events_and_reviews_does_not_matter(store: &SharedStore) {
    const ORDERS: [&str; 12] = [
        "cerb", "cbre", "crbe", "creb", "cebr", "cber", "ecrb", "ecbr", "bcre", "bcer", "ebcr",
        "becr",
    ];
    for decision in [HoldDecision::Release, HoldDecision::Reject] {
        let mut expected = None;
        for order in ORDERS {
            let one = holding_app(store).await;
            for step in order.chars() {
                match step {
                    'c' => one.attribute_install("phone", 10).await,
                    'e' => one.pay("phone", "p1", 12).await,
                    'b' => one.bill("phone", "b1", DAY + 20).await,
                    _ => {
                        let reviewed = one.review("phone", decision, DAY + 30).await;
                        reviewed.expect("an install is reviewed");
                    }
                }
            }
            let counted = one.counted().await;
            let expected = expected.get_or_insert_with(|| counted.clone());
            assert_eq!(counted, *expected, "{order} {decision:?}");
            let counts = i64::from(decision == HoldDecision::Release);
            let (installs, revenue) = (counted.0.installs, counted.0.revenue_micros);
            assert_eq!((installs, revenue), (counts, counts * 2 * PAID), "{order}");
        }
    }
}

/// Better evidence can flag an install that already counted, or clear the flags of a held one.
pub async fn better_evidence_starts_and_ends_a_hold(store: &SharedStore) {
    let one = holding_app(store).await;
    let click = one.tenant.record_click(5).await;
    let mut first = one.tenant.configure("phone", 60);
    first.traits.model = Some("iPhone15,2".to_owned());
    one.tenant.call_configure(first).await;
    one.pay("phone", "p1", 61).await;
    let organic = one.tenant.figures_of("organic").await;
    assert_eq!((organic.installs, organic.held_installs), (0, 1));
    let better = one.tenant.configure_with_click("phone", &click, 80);
    one.tenant.call_configure(better).await;
    let (figures, cohorts) = one.counted().await;
    assert_eq!((figures.installs, figures.held_installs), (1, 0));
    assert_eq!(cohorts, [(0, 1, PAID)]);
    assert_eq!(one.held(HoldFilter::of(HoldState::Held)).await.len(), 0);
    let refused = one.review("phone", HoldDecision::Release, 90).await;
    assert_eq!(refusal(refused), Refusal::InstallNotHeld);

    let other = holding_app(store).await;
    let click = other.tenant.record_click(55).await;
    let first = other.tenant.configure("phone", 60);
    other.tenant.call_configure(first).await;
    other.pay("phone", "p1", DAY + 61).await;
    assert_eq!(other.cohorts().await, [(0, 1, 0), (1, 1, PAID)]);
    let better = other.tenant.configure_with_click("phone", &click, 80);
    other.tenant.call_configure(better).await;
    assert_eq!(other.counted().await, (held_figures(1, PAID), vec![]));
    assert_eq!(other.tenant.figures_of("organic").await, Figures::default());
    let released = other.review("phone", HoldDecision::Release, DAY + 70).await;
    released.expect("an install is released");
    assert_eq!(other.counted().await.1, [(0, 1, 0), (1, 1, PAID)]);
}

/// A decision can be changed as long as nothing was sent. Rejecting a released install cancels its
/// pending deliveries.
pub async fn a_decision_stays_once_something_was_sent(store: &SharedStore) {
    let one = holding_app(store).await;
    one.attribute_install("phone", 10).await;
    for decision in [HoldDecision::Release, HoldDecision::Reject] {
        let reviewed = one.review("phone", decision, 20).await;
        reviewed.expect("an install is reviewed");
    }
    let statuses = one.delivery_statuses().await;
    assert_eq!(statuses[0].1, "cancelled");
    assert_eq!(one.counted().await, (held_figures(0, 0), vec![]));
    let released = one.review("phone", HoldDecision::Release, 30).await;
    released.expect("an install is released");
    let pending = ("install".to_owned(), "pending", None);
    assert_eq!(one.delivery_statuses().await, [pending]);
    one.lease(LEASE, 200, 300).await.expect("a lease");
    one.take_due(LEASE, 200).await.expect("deliveries");
    let refused = one.review("phone", HoldDecision::Reject, 201).await;
    assert_eq!(refusal(refused), Refusal::InstallForwarded);
    assert_eq!(one.counted().await.0.installs, 1);
}

/// An install that is released after a network's window counts, but is too old to be sent.
pub async fn a_late_release_is_too_old_for_the_network(store: &SharedStore) {
    let one = holding_app(store).await;
    one.attribute_install("phone", 10).await;
    let released = one.review("phone", HoldDecision::Release, 60 * DAY).await;
    released.expect("an install is released");
    assert_eq!(one.counted().await.0.installs, 1);
    assert_eq!(one.delivery_statuses().await, []);
    assert_eq!(
        one.log().await[0].skipped,
        [(Network::A, SkipReason::TooOld)]
    );
}

/// Held installs are listed newest first, by state, flag, link and time, and a rule decides about
/// those that match.
pub async fn held_installs_are_found_and_reviewed_by_rule(store: &SharedStore) {
    let one = holding_app(store).await;
    for (number, name) in (0..).zip(["one", "two", "three"]) {
        one.attribute_install(name, 100 + 100 * number).await;
    }
    let mut impossible = one.tenant.configure("four", 400);
    impossible.traits.model = Some("iPhone15,2".to_owned());
    one.tenant.call_configure(impossible).await;
    let all = HoldFilter::of(HoldState::Held);
    assert_eq!(one.held(all).await, ["four", "three", "two", "one"]);
    let short = HoldFilter {
        flag: Some(Flag::ShortCtit),
        ..all
    };
    assert_eq!(one.held(short).await, ["three", "two", "one"]);
    let of_link = HoldFilter {
        link: Some(one.tenant.link.id),
        ..all
    };
    assert_eq!(one.held(of_link).await, ["three", "two", "one"]);
    let between = HoldFilter {
        from: Some(at(200)),
        until: Some(at(300)),
        ..all
    };
    assert_eq!(one.held(between).await, ["two"]);
    let (reader, app) = (one.reader(), one.queue.app);
    let first = store.held_installs(&reader, app, all, first_page("3"));
    let first = first.await.expect("a page");
    assert!(first.has_more);
    let last = first.items.last().expect("three").attribution.id;
    let rest = PageRequest {
        before: Some(*last.as_bytes()),
        ..first_page("3")
    };
    let rest = store.held_installs(&reader, app, all, rest).await;
    let rest = rest.expect("a page").items;
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].device.key, device("one"));

    let count = one.review_all(between, HoldDecision::Reject).await;
    assert_eq!((count.decided, count.has_more), (1, false));
    let count = one.review_all(short, HoldDecision::Release).await;
    assert_eq!((count.decided, count.has_more), (2, false));
    assert_eq!(one.held(all).await, ["four"]);
    let state = |state| HoldFilter { state, ..all };
    let released = one.held(state(HoldState::Released)).await;
    assert_eq!(released, ["three", "one"]);
    assert_eq!(one.held(state(HoldState::Rejected)).await, ["two"]);
    let count = one.review_all(short, HoldDecision::Release).await;
    assert_eq!((count.decided, count.has_more), (0, false));
    let (figures, _) = one.counted().await;
    assert_eq!((figures.installs, figures.held_installs), (2, 0));
}

/// A review is written to the audit log, and is limited to the caller's organization and
/// environment.
pub async fn reviews_stay_within_their_tenant_and_are_logged(store: &SharedStore) {
    let one = holding_app(store).await;
    one.attribute_install("phone", 10).await;
    let app = one.queue.app;
    let stranger: Authorized<InstallsReview> =
        Authorized::operator(organization(store).await.organization());
    let all = HoldFilter::of(HoldState::Held);
    let reader = stranger.read_access();
    let list = store.held_installs(&reader, app, all, first_page("5"));
    assert_eq!(refusal(list.await), Refusal::AppNotFound);
    let release = HoldDecision::Release;
    let foreign = store.review_install(&stranger, app, device("phone"), release, origin(20));
    assert_eq!(refusal(foreign.await), Refusal::AppNotFound);
    let foreign = store.review_installs(&stranger, app, all, release, origin(21));
    assert_eq!(refusal(foreign.await), Refusal::AppNotFound);

    let mut key = new_key(one.tenant.writer.organization()).key;
    (key.permission, key.environment) = (Permission::Full, Environment::Test);
    let tester: Authorized<InstallsReview> =
        authorize(&key, super::fixtures::CLIENT).expect("a test key reviews");
    let reader = tester.read_access();
    let list = store.held_installs(&reader, app, all, first_page("5"));
    assert_eq!(list.await.expect("a list").items, []);
    let other = store.review_install(&tester, app, device("phone"), release, origin(22));
    assert_eq!(refusal(other.await), Refusal::DeviceNotFound);
    let count = store.review_installs(&tester, app, all, release, origin(23));
    assert_eq!(count.await.expect("none").decided, 0);

    let rejected = one.review("phone", HoldDecision::Reject, 30).await;
    let rejected = rejected.expect("an install is rejected");
    let hold = rejected.attribution.hold.expect("a hold");
    let review = hold.review.expect("a review");
    assert_eq!(review.decided_at, at(30));
    one.review_all(all, release).await;
    let reader = one.reader();
    let log = store.audit_log(&reader, Some(app), first_page("5"));
    let log = log.await.expect("the log").items;
    let entry = |action| log.iter().find(|entry| entry.action == action);
    let rejection = entry(Action::HeldRejected).expect("an entry");
    assert_eq!(rejection.target, rejected.attribution.id.to_string());
    assert_eq!(rejection.changes[0].after.as_deref(), Some("rejected"));
    let by_rule = entry(Action::HeldReleased).expect("an entry");
    assert_eq!(by_rule.target, "0 installs");
}
