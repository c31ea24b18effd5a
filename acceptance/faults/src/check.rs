//! Compares what the clients were told with what the server stored, reports and forwarded.

use crate::account::Totals;
use crate::instance::Instance;
use crate::load::Ledger;
use crate::requests::{LoadRequest, Outcome};
use crate::site::{ACCOUNT, NETWORKS};
use futures_util::StreamExt as _;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::time::Timestamp;

/// Maximum time until a request that was repeated after a fault succeeds.
const REPEAT_MAX: Duration = Duration::from_mins(1);
/// Concurrent repetitions.
const REPEATED_AT_ONCE: usize = 16;
const REPEAT_PAUSE: Duration = Duration::from_millis(50);
/// Maximum time until all deliveries have ended. The queue of a killed node waits for its lease, and
/// back-off follows an error.
const SETTLE_MAX: Duration = Duration::from_mins(5);
const SETTLE_PAUSE: Duration = Duration::from_millis(300);
/// Conversions that the simulator returns at most: more than an episode can send.
const CONVERSIONS_MAX: usize = 1_000_000;
/// Examples of lost events and the like in a description.
const EXAMPLES: usize = 3;
/// Days before and after today with events: a clock may be a day off, and a day ends at midnight.
const DAYS_OFF_MAX: i32 = 2;

/// How deliveries must have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryEnds {
    /// All are delivered.
    Delivered,
    /// Those of events whose id begins with this text are delivered. The others may have ended with a
    /// reason, because a network rejects events of the future.
    DeliveredIf(&'static str),
}

impl DeliveryEnds {
    /// Returns whether a delivery may have ended without being delivered.
    fn allow(self, delivery: &Value) -> bool {
        let event = delivery["event"]["eventId"].as_str().unwrap_or_default();
        let is_final = delivery["status"] != "pending" && !delivery["reason"].is_null();
        match self {
            Self::Delivered => false,
            Self::DeliveredIf(beginning) => is_final && !event.starts_with(beginning),
        }
    }
}

/// Repeats what the clients do not know, and checks everything: events, clicks, figures and
/// conversions. Stops the nodes.
pub async fn check(instance: &mut Instance, ledger: Ledger, totals: &mut Totals) {
    check_with(instance, ledger, DeliveryEnds::Delivered, totals).await;
}

/// Does the same with another rule for the ends of deliveries.
pub async fn check_with(
    instance: &mut Instance,
    mut ledger: Ledger,
    ends: DeliveryEnds,
    totals: &mut Totals,
) {
    let base = instance.addresses.next();
    for probe in &instance.probes {
        ledger.acknowledge(&probe.creates);
    }
    totals.acknowledged += ledger.requests;
    totals.unknown += ledger.unanswered + ledger.unavailable + ledger.unanswered_taps;
    totals.refused += ledger.refused;
    totals.wrong_answers += ledger.wrong;
    for wrong in std::mem::take(&mut ledger.wrong_answers) {
        totals.violated(wrong);
    }
    // Acknowledged events must be stored before anything is repeated.
    let Some(early) = instance.site.export(&base, "events").await else {
        totals.unaccounted += 1;
        totals.violated("the event log cannot be read");
        return;
    };
    let early: BTreeSet<String> = early.iter().map(event_key).collect();
    report_lost(&ledger, &early, totals);
    repeat_unknown(instance, &mut ledger, totals).await;
    settle(instance, totals).await;
    let Some(stored) = instance.site.export(&base, "events").await else {
        totals.unaccounted += 1;
        totals.violated("the event log cannot be read after the load");
        return;
    };
    check_events(&ledger, &stored, totals);
    check_clicks(instance, &ledger, &base, totals).await;
    check_refunds(&stored, totals);
    check_figures(instance, &stored, &base, totals).await;
    check_conversions(instance, &base, ends, totals).await;
    match instance.stop_and_run(&["rollups", "rebuild"]) {
        Ok(printed) if printed.contains(", 0 were corrected") => {}
        Ok(printed) => {
            totals.wrong_sums += 1;
            totals.violated(format!("the rebuild corrected roll-ups: {printed}"));
        }
        Err(error) => {
            totals.unaccounted += 1;
            totals.violated(format!("the rebuild failed: {error}"));
        }
    }
}

/// Returns the name of a stored event in the ledger.
fn event_key(event: &Value) -> String {
    let text = |field: &str| event[field].as_str().unwrap_or_default();
    if event["name"] == "install" {
        format!("install {}", text("deviceId"))
    } else {
        text("eventId").to_owned()
    }
}

/// Returns the amount of a stored event in millionths of a dollar.
fn micros(amount: &Value) -> i64 {
    let text = amount.to_string();
    let amount = Amount::parse(text.trim_matches('"'));
    amount.map_or(0, Amount::micros)
}

fn report_lost(ledger: &Ledger, stored: &BTreeSet<String>, totals: &mut Totals) {
    let lost: Vec<&String> = ledger
        .acknowledged
        .keys()
        .filter(|key| !stored.contains(*key))
        .collect();
    if !lost.is_empty() {
        totals.lost += lost.len() as u64;
        totals.violated(format!("lost {:?}", &lost[..lost.len().min(EXAMPLES)]));
    }
}

/// Repeats each request with an unknown outcome until it succeeds or a rule rejects it.
async fn repeat_unknown(instance: &Instance, ledger: &mut Ledger, totals: &mut Totals) {
    let unknown = std::mem::take(&mut ledger.unknown);
    let repeat = |request: LoadRequest| async move {
        let begun = Instant::now();
        loop {
            let outcome = request
                .send(&instance.site, &instance.addresses.next())
                .await;
            let is_over = begun.elapsed() > REPEAT_MAX;
            match outcome {
                Outcome::Unknown { .. } if !is_over => tokio::time::sleep(REPEAT_PAUSE).await,
                outcome => return (request, outcome),
            }
        }
    };
    let mut repeated = futures_util::stream::iter(unknown)
        .map(repeat)
        .buffer_unordered(REPEATED_AT_ONCE);
    while let Some((request, outcome)) = repeated.next().await {
        match outcome {
            Outcome::Acknowledged => ledger.acknowledge(&request.creates),
            Outcome::Refused => totals.refused += 1,
            Outcome::Unknown { .. } | Outcome::Wrong(_) => {
                totals.wrong_answers += 1;
                totals.violated(format!(
                    "{} was repeated in vain: {outcome:?}",
                    request.path()
                ));
            }
        }
    }
}

/// Compares the stored events with the acknowledged ones.
fn check_events(ledger: &Ledger, stored: &[Value], totals: &mut Totals) {
    let mut found: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for event in stored {
        let amounts = found.entry(event_key(event)).or_default();
        amounts.push(micros(&event["revenue"]["usd"]));
    }
    report_lost(ledger, &found.keys().cloned().collect(), totals);
    for (key, amounts) in &found {
        match ledger.acknowledged.get(key) {
            None => {
                totals.unaccounted += 1;
                totals.violated(format!("{key} is stored and was never acknowledged"));
            }
            Some(_) if amounts.len() > 1 => {
                totals.doubled += 1;
                totals.violated(format!("{key} is stored {} times", amounts.len()));
            }
            Some(sent) if *sent != amounts[0] => {
                totals.wrong_sums += 1;
                totals.violated(format!(
                    "{key} was sent with {sent} and stored with {}",
                    amounts[0]
                ));
            }
            Some(_) => {}
        }
    }
}

/// Checks that every click id in a redirect is stored, and that no tap made two clicks.
async fn check_clicks(instance: &Instance, ledger: &Ledger, base: &str, totals: &mut Totals) {
    let Some(stored) = instance.site.export(base, "clicks").await else {
        totals.unaccounted += 1;
        totals.violated("the clicks cannot be read");
        return;
    };
    let ids: BTreeSet<&str> = stored
        .iter()
        .filter_map(|click| click["id"].as_str())
        .collect();
    let lost = ledger
        .clicks
        .iter()
        .filter(|click| !ids.contains(click.as_str()));
    let lost = lost.count() as u64;
    if lost > 0 {
        totals.lost += lost;
        totals.violated(format!("{lost} clicks are lost"));
    }
    let tapped = ledger.clicks.len() as u64 + ledger.unanswered_taps + NETWORKS.len() as u64;
    if ids.len() as u64 > tapped || ids.len() != stored.len() {
        totals.doubled += 1;
        totals.violated(format!("{} clicks of {tapped} taps", stored.len()));
    }
}

/// Checks that no payment was refunded beyond its amount.
fn check_refunds(stored: &[Value], totals: &mut Totals) {
    let mut left: BTreeMap<&str, i64> = BTreeMap::new();
    for event in stored.iter().filter(|event| event["source"] == "web") {
        let (paid, id) = match event["name"].as_str() {
            Some("refund") => (
                micros(&event["revenue"]["usd"]),
                &event["originalTransactionId"],
            ),
            Some("purchase" | "renewal") => (micros(&event["revenue"]["usd"]), &event["eventId"]),
            _ => continue,
        };
        *left.entry(id.as_str().unwrap_or_default()).or_default() += paid;
    }
    let excessive = left.values().filter(|left| **left < 0).count() as u64;
    if excessive > 0 {
        totals.wrong_sums += excessive;
        totals.violated(format!(
            "{excessive} payments were refunded beyond their amount"
        ));
    }
}

/// Compares the app's figures with a count over the stored events.
async fn check_figures(instance: &Instance, stored: &[Value], base: &str, totals: &mut Totals) {
    let today = Day::of(Timestamp::from_millis(instance.site.now_ms())).as_days();
    let [from, to] = [-DAYS_OFF_MAX, DAYS_OFF_MAX].map(|days| Day::from_days(today + days));
    let path = format!("/stats?groupBy=day&from={from}&to={to}");
    let Some((200, report)) = instance.site.call(base, "GET", &path, None).await else {
        totals.unaccounted += 1;
        totals.violated("the figures cannot be read");
        return;
    };
    let figures = &report["meta"]["totals"];
    let mut expected: BTreeMap<&str, i64> = BTreeMap::new();
    for event in stored {
        let name = event["name"].as_str().unwrap_or_default();
        let is_counted = event["revenue"]["counted"] == true;
        let amount = if is_counted {
            micros(&event["revenue"]["usd"])
        } else {
            0
        };
        let mut add = |figure, amount| *expected.entry(figure).or_default() += amount;
        match name {
            "install" => add("installs", 1),
            "refund" => {
                add("refunds", 1);
                add("refundedMicros", -amount);
            }
            "purchase" => add("purchases", 1),
            "subscribe" => add("subscriptions", 1),
            "renewal" => add("renewals", 1),
            _ => {}
        }
        if matches!(name, "purchase" | "subscribe" | "renewal") {
            add("revenueMicros", amount);
        }
        add("events", 1);
    }
    let reported = |figure: &str| match figure.strip_suffix("Micros") {
        Some(amount) => micros(&figures[amount]),
        None => figures[figure].as_i64().unwrap_or(-1),
    };
    for (figure, expected) in expected {
        let reported = reported(figure);
        if reported != expected {
            totals.wrong_sums += 1;
            totals.violated(format!("{figure} is {reported} instead of {expected}"));
        }
    }
}

/// Waits until no delivery is pending.
async fn settle(instance: &Instance, totals: &mut Totals) {
    let begun = Instant::now();
    loop {
        let base = instance.addresses.next();
        let path = "/deliveries?status=pending&limit=1";
        let pending = instance.site.call(&base, "GET", path, None).await;
        if let Some((200, page)) = &pending
            && page["data"].as_array().is_some_and(Vec::is_empty)
        {
            return;
        }
        if begun.elapsed() > SETTLE_MAX {
            totals.unaccounted += 1;
            totals.violated(format!("deliveries are still pending: {pending:?}"));
            return;
        }
        tokio::time::sleep(SETTLE_PAUSE).await;
    }
}

/// Compares the delivered conversions with those that the networks received. Each has one id and counts
/// once, and nothing of the test environment was sent.
async fn check_conversions(
    instance: &Instance,
    base: &str,
    ends: DeliveryEnds,
    totals: &mut Totals,
) {
    let Some(deliveries) = list(instance, base, "/deliveries?limit=500").await else {
        totals.unaccounted += 1;
        totals.violated("the deliveries cannot be read");
        return;
    };
    for (network, _) in NETWORKS {
        let of_network = deliveries
            .iter()
            .filter(|one| one["network"] == network.label());
        let mut delivered = BTreeSet::new();
        for delivery in of_network {
            let id = delivery["dedupId"].as_str().unwrap_or_default();
            match delivery["status"].as_str() {
                Some("delivered") => drop(delivered.insert(id.to_owned())),
                _ if ends.allow(delivery) => {}
                status => {
                    totals.unaccounted += 1;
                    totals.violated(format!(
                        "a delivery of {} ended as {status:?}",
                        network.label()
                    ));
                }
            }
        }
        let control = instance.simulator.control();
        let received = control.conversions(network, Some(ACCOUNT), None, CONVERSIONS_MAX);
        let id = |one: &Value| one["eventId"].as_str().unwrap_or_default().to_owned();
        let ids: BTreeSet<String> = received.iter().map(id).collect();
        let repeated = received.iter().filter(|one| one["times"] != 1).count();
        let counted_again = received.iter().filter(|one| one["counted"] != 1).count();
        totals.repeated_sends += repeated as u64;
        totals.doubled += counted_again as u64 + (received.len() - ids.len()) as u64;
        let differing = delivered.symmetric_difference(&ids).count() as u64;
        if differing > 0 || counted_again > 0 {
            totals.unaccounted += differing;
            totals.violated(format!(
                "{}: {} delivered, {} received, {differing} differ, {counted_again} counted again",
                network.label(),
                delivered.len(),
                ids.len()
            ));
        }
    }
}

/// Reads all pages of a list.
async fn list(instance: &Instance, base: &str, path: &str) -> Option<Vec<Value>> {
    let (mut rows, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("{path}{cursor}");
        let (status, page) = instance.site.call(base, "GET", &path, None).await?;
        if status != 200 {
            return None;
        }
        rows.extend(page["data"].as_array()?.iter().cloned());
        match page["meta"]["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Some(rows),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::DeliveryEnds;
    use serde_json::json;

    #[test]
    fn only_a_delivery_with_a_reason_may_be_left_out() {
        let delivery = |event: &str, reason: Option<&str>| json!({"status": "failed", "reason": reason, "event": {"eventId": event}});
        let early = delivery("r1-c2-order", Some("too_new"));
        let late = delivery("r3-c2-order", Some("too_new"));
        let ends = DeliveryEnds::DeliveredIf("r3-");
        assert!(ends.allow(&early) && !ends.allow(&late));
        assert!(!ends.allow(&delivery("r1-c2-order", None)));
        assert!(!DeliveryEnds::Delivered.allow(&early));
        let pending = json!({"status": "pending", "reason": "x", "event": {"eventId": "r1-"}});
        assert!(!ends.allow(&pending));
    }
}
