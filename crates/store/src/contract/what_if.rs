//! Installs that are replayed under other attribution rules.

use super::fixtures::{SharedStore, at, refusal};
use super::sdk_fixtures::{Tenant, payment, tenant};
use crate::{ReplayPart, ReplaySpan, WhatIfRequest, run_what_if};
use tributary_domain::access::{AppsRead, Authorized, Environment};
use tributary_domain::app::{AttributionRules, FraudPolicy};
use tributary_domain::click::address::AddressHasher;
use tributary_domain::device::AdvertisingId;
use tributary_domain::install::what_if::{StoredInstall, WhatIfReport};
use tributary_domain::keyring::Keyring;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::range::DayRange;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::EventId;
use tributary_domain::vocabulary::timezone::Timezone;

const HOUR: i64 = 60 * 60;
const PAID: i64 = 10_000_000;
const ADVERTISING_ID: &str = "38400000-8cf0-11bd-b23e-10b96e40000d";

fn hasher() -> AddressHasher {
    AddressHasher::new(&Keyring::new([7; 32]))
}

impl Tenant {
    fn apps_reader(&self) -> Authorized<AppsRead> {
        self.writer.read_access()
    }

    async fn replay_span(&self, limit: u32) -> ReplaySpan {
        let (reader, period) = (self.apps_reader(), (at(0), at(100 * HOUR)));
        let span = self.store.replay_span(&reader, self.app.id, period, limit);
        span.await.expect("a span")
    }

    async fn replay_part(
        &self,
        from: EventId,
        is_read: bool,
        limit: u32,
    ) -> (Vec<StoredInstall>, Option<EventId>) {
        let part = ReplayPart {
            from,
            is_read,
            until: at(100 * HOUR),
            limit,
            hasher: hasher(),
        };
        let reader = self.apps_reader();
        let part = self.store.replay_part(&reader, self.app.id, part).await;
        part.expect("a part")
    }

    async fn what_if(&self, rules: AttributionRules) -> WhatIfReport {
        let request = WhatIfRequest {
            app: self.app.id,
            rules,
            range: DayRange {
                from: Day::of(at(0)),
                to: Day::of(at(100 * HOUR)),
                zone: Timezone::UTC,
            },
            hasher: hasher(),
        };
        let reader = self.apps_reader();
        let run = run_what_if(self.store.as_ref(), &reader, request, |_, _| ());
        run.await.expect("a replay").1
    }

    async fn pay_dollars(&self, device: &str, id: &str, amount: &str, seconds: i64) {
        let events = vec![payment(id, amount, "USD", seconds)];
        let arrival = self.arrival(device, seconds);
        let accepted = self.store.accept_sdk_events(arrival, events).await;
        accepted.expect("events are accepted");
    }

    /// Records traffic: an install by a click id, one by its advertising id, one by its address, one
    /// too soon after its click, and one without evidence.
    async fn record_traffic(&self) {
        let click = self.record_click(0).await;
        let mut first = self.configure_with_click("by-id", &click, 30 * HOUR);
        first.advertising_id = Some(AdvertisingId::stored(ADVERTISING_ID.to_owned()));
        self.call_configure(first).await;
        self.pay_dollars("by-id", "p1", "10", 31 * HOUR).await;
        let hash = hasher().advertising_id(&AdvertisingId::stored(ADVERTISING_ID.to_owned()));
        let mut advertised = self.click(10 * HOUR);
        advertised.advertising_hash = Some(hash);
        let recorded = self.store.record_click(advertised).await;
        recorded.expect("a click is recorded");
        let mut second = self.configure("by-advertising-id", 32 * HOUR);
        second.advertising_id = Some(AdvertisingId::stored(ADVERTISING_ID.to_owned()));
        second.advertising_hash = Some(hash);
        self.call_configure(second).await;
        self.pay_dollars("by-advertising-id", "p2", "10", 33 * HOUR)
            .await;
        self.record_click(40 * HOUR).await;
        let near = self.configure_from_address("by-address", 42 * HOUR);
        self.call_configure(near).await;
        let soon = self.record_click(50 * HOUR).await;
        let soon = self.configure_with_click("too-soon", &soon, 50 * HOUR + 2);
        self.call_configure(soon).await;
        self.call_configure(self.configure("alone", 60 * HOUR))
            .await;
    }
}

/// Returns the figures of each network: installs, held installs and revenue.
fn figures(report: &WhatIfReport, is_then: bool) -> Vec<(String, i64, i64, i64)> {
    let rows = report.networks.iter();
    let rows = rows.map(|row| {
        let figures = if is_then { row.then } else { row.now }.figures;
        let (installs, held) = (figures.installs, figures.held_installs);
        (row.network.clone(), installs, held, figures.revenue_micros)
    });
    rows.filter(|(_, installs, held, _)| installs + held > 0)
        .collect()
}

/// Every install is read once, in order, with its clicks, their claims and its revenue.
pub async fn installs_are_read_in_parts_with_their_evidence(store: &SharedStore) {
    let one = tenant(store).await;
    one.record_traffic().await;
    let span = one.replay_span(10).await;
    assert_eq!((span.installs, span.has_older), (5, false));
    let newest = one.replay_span(2).await;
    assert_eq!((newest.installs, newest.has_older), (2, true));
    let mut next = span.first.map(|first| (first, false));
    let (mut read, mut parts) = (Vec::new(), 0);
    while let Some((from, is_read)) = next {
        let (installs, last) = one.replay_part(from, is_read, 2).await;
        read.extend(installs);
        parts += 1;
        next = last.map(|last| (last, true));
    }
    let names: Vec<_> = read.iter().map(|one| one.device.key.as_str()).collect();
    let expected = [
        "by-id",
        "by-advertising-id",
        "by-address",
        "too-soon",
        "alone",
    ];
    assert_eq!((names, parts), (expected.to_vec(), 3));
    assert_eq!(newest.first, Some(read[3].install));
    let owner = |install: &StoredInstall| {
        let owner = install.clicks.first().and_then(|click| click.owner.clone());
        owner.map(|owner| (owner.device.as_str().to_owned(), owner.first_open_at))
    };
    for install in &read[..4] {
        let device = install.device.key.as_str().to_owned();
        let expected = Some((device, Some(install.device.first_seen_at)));
        assert_eq!(owner(install), expected);
    }
    // The device's advertising id was not searched at the install, and now is.
    let searched: Vec<_> = read
        .iter()
        .map(|one| one.same_advertising_id.len())
        .collect();
    assert_eq!(searched, [1, 0, 0, 0, 0]);
    let revenue: Vec<_> = read.iter().map(|one| one.revenue_micros).collect();
    assert_eq!(revenue, [PAID, PAID, 0, 0, 0]);
}

/// The report of other rules equals the report of an app that recorded the same traffic under these
/// rules.
pub async fn a_replay_equals_recording_under_the_rules(store: &SharedStore) {
    let one = tenant(store).await;
    one.record_traffic().await;
    let before = (
        one.figures().await,
        one.what_if(one.app.attribution.clone()).await,
    );
    assert_eq!((before.1.moved, before.1.gaps.len()), (0, 0));
    let cases = [
        (20, true, FraudPolicy::Hold),
        (24, false, FraudPolicy::Hold),
        (168, false, FraudPolicy::Flag),
        (168, true, FraudPolicy::Hold),
        (25, false, FraudPolicy::Refuse),
    ];
    for (hours, is_on, fraud) in cases {
        let rules = AttributionRules {
            click_window_hours: hours,
            probabilistic_android: is_on,
            fraud,
            ..AttributionRules::default()
        };
        let mut other = tenant(store).await;
        other.app.attribution = rules.clone();
        other.record_traffic().await;
        let replayed = one.what_if(rules.clone()).await;
        let recorded = other.what_if(rules).await;
        let unknown = replayed
            .gaps
            .iter()
            .filter(|(gap, _)| gap.loses_credit())
            .count();
        if unknown == 0 {
            assert_eq!(
                figures(&replayed, true),
                figures(&recorded, false),
                "{hours}"
            );
        }
        assert_eq!(unknown > 0, hours == 20, "only the address is unknown");
        assert!(replayed.moved > 0, "{hours} {is_on} {fraud:?}");
    }
    let after = (
        one.figures().await,
        one.what_if(one.app.attribution.clone()).await,
    );
    assert_eq!(before, after);
}

/// A click id that replaced an earlier decision long after the first open counts only within the tried
/// window. What cannot be decided again is counted.
pub async fn late_evidence_counts_within_the_tried_window(store: &SharedStore) {
    let one = tenant(store).await;
    let click = one.record_click(0).await;
    one.call_configure(one.configure("late", HOUR)).await;
    let claims = one.configure_with_click("late", &click, 31 * HOUR);
    one.call_configure(claims).await;
    one.pay_dollars("late", "p1", "10", 32 * HOUR).await;
    let with_window = |hours| AttributionRules {
        click_window_hours: hours,
        probabilistic_android: false,
        ..one.app.attribution.clone()
    };
    let paid = vec![("network_a".to_owned(), 1, 0, PAID)];
    let organic = vec![("organic".to_owned(), 1, 0, PAID)];
    for (hours, moved, expected) in [(30, 0, &paid), (29, 1, &organic), (1, 1, &organic)] {
        let report = one.what_if(with_window(hours)).await;
        assert_eq!((report.moved, report.kept()), (moved, 0), "{hours}");
        assert_eq!(figures(&report, false), paid, "{hours}");
        assert_eq!(&figures(&report, true), expected, "{hours}");
    }
    // Within a day, the first call may have sent an id whose click was not stored yet.
    let click = one.record_click(40 * HOUR).await;
    one.call_configure(one.configure("soon", 41 * HOUR)).await;
    let claims = one.configure_with_click("soon", &click, 61 * HOUR);
    one.call_configure(claims).await;
    let report = one.what_if(with_window(10)).await;
    assert_eq!((report.moved, report.kept()), (1, 1));
}

/// Installs stay within their tenant and environment.
pub async fn another_organization_replays_nothing(store: &SharedStore) {
    let (one, other) = (tenant(store).await, tenant(store).await);
    one.record_traffic().await;
    let mut test = one.configure("tester", 61 * HOUR);
    test.environment = Environment::Test;
    one.call_configure(test).await;
    assert_eq!(one.replay_span(10).await.installs, 5);
    let stranger = other.apps_reader();
    let period = (at(0), at(100 * HOUR));
    let span = store.replay_span(&stranger, one.app.id, period, 10).await;
    assert_eq!(refusal(span), Refusal::AppNotFound);
    let part = ReplayPart {
        from: EventId::first_at(at(0)),
        is_read: false,
        until: at(100 * HOUR),
        limit: 10,
        hasher: hasher(),
    };
    let part = store.replay_part(&stranger, one.app.id, part).await;
    assert_eq!(refusal(part), Refusal::AppNotFound);
    assert_eq!(other.replay_span(10).await.first, None);
    assert_eq!(
        other.what_if(other.app.attribution.clone()).await.installs,
        0
    );
}
