//! Checks that acknowledged things exist once, that nothing else exists, and that refunds do not
//! exceed payments.

use super::{Evidence, micros};
use crate::disk::DATABASE;
use crate::model::{Key, Kind, Knowledge, Ledger};
use crate::requests::web_event_id;
use crate::scenario::{Keys, Request};
use crate::totals::{DOUBLED, LOST};
use rusqlite::Connection;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) fn check(evidence: &Evidence<'_>) -> Vec<String> {
    let mut violations = Vec::new();
    let stored = stored(evidence, &mut violations);
    compare(evidence, &stored, &mut violations);
    check_contents(evidence, &mut violations);
    check_refunds(evidence, &mut violations);
    check_erasures(evidence, &mut violations);
    violations
}

/// Counts what is stored.
fn stored(evidence: &Evidence<'_>, violations: &mut Vec<String>) -> BTreeMap<Key, u32> {
    let mut stored = BTreeMap::new();
    let mut count = |key: Key| *stored.entry(key).or_default() += 1;
    for (keys, log) in &evidence.logs {
        for event in log {
            let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
            match (event["source"].as_str(), event["name"].as_str()) {
                (Some("sdk"), Some("install")) => {
                    count(Key::new(Kind::Install, *keys, text("deviceId")));
                }
                (Some("sdk"), _) => count(Key::new(Kind::SdkEvent, *keys, text("eventId"))),
                (Some("web"), _) => count(Key::new(Kind::WebEvent, *keys, text("eventId"))),
                // Several notifications may lead to one event.
                (Some("billing"), _) => {}
                _ => violations.push(format!("unknown event: {event}")),
            }
        }
    }
    match read_tables(evidence) {
        Ok(keys) => keys.into_iter().for_each(count),
        Err(error) => violations.push(format!("the tables cannot be read: {error}")),
    }
    stored
}

/// Reads clicks and notifications, which the API does not list.
fn read_tables(evidence: &Evidence<'_>) -> Result<Vec<Key>, rusqlite::Error> {
    let connection = Connection::open(evidence.folder.join(DATABASE))?;
    let mut keys = stored_clicks(&connection)?;
    let mut statement = connection.prepare("select given_id, environment from notifications")?;
    let rows = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?;
    for row in rows {
        let (id, environment): (String, String) = row?;
        let environment = if environment == "live" {
            Keys::Live
        } else {
            Keys::Test
        };
        keys.push(Key::new(Kind::Notification, environment, id));
    }
    Ok(keys)
}

/// Reads the marks of the clicks from the database.
fn stored_clicks(connection: &Connection) -> Result<Vec<Key>, rusqlite::Error> {
    let mut statement = connection.prepare("select captured from clicks")?;
    let rows = statement.query_map((), |row| row.get::<_, String>(0))?;
    let mut marks = Vec::new();
    for captured in rows {
        let captured = captured?;
        // The template's clicks have no mark.
        if let Some((_, rest)) = captured.split_once("\"tap") {
            let number = rest.split('"').next().unwrap_or_default();
            marks.push(Key::new(Kind::Click, Keys::Live, format!("tap{number}")));
        }
    }
    Ok(marks)
}

fn compare(evidence: &Evidence<'_>, stored: &BTreeMap<Key, u32>, violations: &mut Vec<String>) {
    let ledger = evidence.world.ledger();
    for (key, known) in &ledger.things {
        let count = stored.get(key).copied().unwrap_or_default();
        if count == 0 && !known.acknowledged.is_empty() {
            violations.push(format!("{LOST}: {key:?} was acknowledged"));
        }
        let contents = distinct_contents(&ledger, known);
        if contents > 1 && key.kind == Kind::WebEvent {
            violations.push(format!(
                "{DOUBLED}: {key:?} was accepted with different contents {:?}",
                known.acknowledged
            ));
        }
        if known.new > 1 {
            violations.push(format!("{DOUBLED}: {key:?} was new {} times", known.new));
        }
    }
    for (key, count) in stored {
        if *count > 1 {
            violations.push(format!("{DOUBLED}: {key:?} exists {count} times"));
        }
        let known = ledger.things.get(key);
        let is_possible =
            known.is_some_and(|one| !one.acknowledged.is_empty() || !one.unknown.is_empty());
        if !is_possible {
            violations.push(format!("phantom: {key:?} was never sent or was refused"));
        }
    }
}

/// Counts the contents that were acknowledged. Two requests with one id may have the same content by
/// chance; the later one is then a duplicate like any other.
fn distinct_contents(ledger: &Ledger, known: &Knowledge) -> usize {
    let mut contents: Vec<&Request> = Vec::new();
    for number in &known.acknowledged {
        if let Some(request) = ledger.requests.get(number)
            && !contents.contains(&request)
        {
            contents.push(request);
        }
    }
    contents.len()
}

/// Checks that each web event has the content that was acknowledged.
fn check_contents(evidence: &Evidence<'_>, violations: &mut Vec<String>) {
    let ledger = evidence.world.ledger();
    for (keys, log) in &evidence.logs {
        for event in log.iter().filter(|event| event["source"] == "web") {
            let id = event["eventId"].as_str().unwrap_or_default();
            let key = Key::new(Kind::WebEvent, *keys, id);
            let Some(known) = ledger.things.get(&key) else {
                continue;
            };
            let possible = if known.acknowledged.is_empty() {
                &known.unknown
            } else {
                &known.acknowledged
            };
            let amount = micros(&event["revenue"]["amount"]).abs();
            let fits = possible.iter().any(|number| {
                let request = ledger.requests.get(number);
                expected_micros(request) == amount && expected_name(request) == event["name"]
            });
            if !fits {
                violations.push(format!("{key:?} has another content: {event}"));
            }
        }
    }
}

fn expected_micros(request: Option<&Request>) -> i64 {
    match request {
        Some(Request::Web {
            kind: crate::scenario::WebKind::SignUp,
            ..
        }) => 0,
        Some(Request::Web { cents, .. }) => i64::try_from(cents * 10_000).unwrap_or(i64::MAX),
        // The purchase of an erasure.
        Some(Request::Erase) => 5_000_000,
        _ => -1,
    }
}

fn expected_name(request: Option<&Request>) -> &'static str {
    match request {
        Some(Request::Web { kind, .. }) => kind.name(),
        Some(Request::Erase) => "purchase",
        _ => "",
    }
}

/// Checks that the refunds of a payment do not exceed it.
fn check_refunds(evidence: &Evidence<'_>, violations: &mut Vec<String>) {
    for (keys, log) in &evidence.logs {
        let amount = |event: &Value| micros(&event["revenue"]["amount"]);
        let payments: BTreeMap<&str, i64> = log
            .iter()
            .filter(|event| event["source"] == "web" && event["name"] != "refund")
            .filter_map(|event| Some((event["eventId"].as_str()?, amount(event))))
            .collect();
        let mut refunded: BTreeMap<&str, i64> = BTreeMap::new();
        for event in log {
            if event["source"] == "web"
                && event["name"] == "refund"
                && let Some(payment) = event["originalTransactionId"].as_str()
            {
                *refunded.entry(payment).or_default() -= amount(event);
            }
        }
        for (payment, sum) in refunded {
            let paid = payments.get(payment).copied().unwrap_or_default();
            if sum > paid {
                violations.push(format!(
                    "refunds exceed the payment {payment} ({keys:?}): {sum} of {paid}"
                ));
            }
        }
    }
}

/// Checks that erased devices are gone, and that their events are still counted.
fn check_erasures(evidence: &Evidence<'_>, violations: &mut Vec<String>) {
    let ledger = evidence.world.ledger();
    for (_, log) in &evidence.logs {
        for event in log {
            let device = event["deviceId"].as_str().unwrap_or_default();
            if ledger.erased.contains(device) {
                let number = device.trim_start_matches("erased-").parse();
                let id = web_event_id(number.unwrap_or_default());
                violations.push(format!("reappeared: the erased device {device} of {id}"));
            }
        }
    }
}
