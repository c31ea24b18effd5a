//! Runs `sdk/tables/conversion_values.json`, which tests every SDK, against the domain's
//! evaluation. The file itself explains its rows.

use serde_json::Value as Json;
use std::time::Duration;
use tributary_domain::exchange::RateValue;
use tributary_domain::skan::evaluate::{
    CachedDocument, ConversionValueUpdate, DOCUMENT_AGE_MAX, ServerEvents, SkanDeviceState,
    TrackedEvent, evaluate,
};
use tributary_domain::skan::{
    CoarseValue, Document, Draft, DraftCondition, DraftLockOn, DraftValue, DraftWindow, validate,
};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::fault::Faults;
use tributary_domain::vocabulary::field_input::FieldInput;
use tributary_domain::vocabulary::money::Amount;

/// Minimum number of rows; fewer means that some were lost.
const ROWS_MIN: usize = 80;

fn table() -> Json {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../sdk/tables/conversion_values.json"
    );
    let text = std::fs::read_to_string(path).expect("the table is part of the repository");
    serde_json::from_str(&text).expect("the table is JSON")
}

fn input<T>(json: &Json, read: impl FnOnce(&Json) -> T) -> FieldInput<T> {
    if json.is_null() {
        FieldInput::Absent
    } else {
        FieldInput::Value(read(json))
    }
}

fn list<T>(json: &Json, read: impl Fn(&Json) -> T) -> FieldInput<Vec<FieldInput<T>>> {
    let items = |json: &Json| {
        let items = json.as_array().expect("a list").iter();
        items.map(|item| FieldInput::Value(read(item))).collect()
    };
    input(json, items)
}

fn integer(json: &Json) -> i64 {
    json.as_i64().expect("an integer")
}

fn boolean(json: &Json) -> bool {
    json.as_bool().expect("a boolean")
}

fn text(json: &Json) -> String {
    json.as_str().expect("a string").to_owned()
}

fn amount(json: &Json) -> Amount {
    let number = json.as_number().expect("a number").to_string();
    // The shortest form of a small number has an exponent. `Amount::parse` accepts one.
    Amount::parse(&number).expect("an amount")
}

fn currency(json: &Json) -> Currency {
    Currency::parse(&text(json)).expect("a currency")
}

fn seconds(json: &Json) -> Duration {
    Duration::from_secs(json.as_u64().expect("seconds"))
}

fn condition(json: &Json) -> DraftCondition {
    DraftCondition {
        event: input(&json["event"], text),
        min_count: input(&json["minCount"], integer),
        max_count: input(&json["maxCount"], integer),
        min_revenue: input(&json["minRevenue"], amount),
        max_revenue: input(&json["maxRevenue"], amount),
    }
}

fn value(json: &Json) -> DraftValue {
    DraftValue {
        name: input(&json["name"], text),
        fine_value: input(&json["fineValue"], integer),
        coarse_value: input(&json["coarseValue"], text),
        lock: input(&json["lock"], boolean),
        conditions: list(&json["conditions"], condition),
    }
}

fn lock_on(json: &Json) -> DraftLockOn {
    DraftLockOn {
        fine_value: input(&json["fineValue"], integer),
        coarse_value: input(&json["coarseValue"], text),
        event: input(&json["event"], text),
    }
}

fn window(json: &Json) -> DraftWindow {
    DraftWindow {
        index: input(&json["index"], integer),
        enabled: input(&json["enabled"], boolean),
        lock_on: input(&json["lockOn"], lock_on),
        values: list(&json["values"], value),
    }
}

/// Validates the document, so that no row uses one that the server would reject.
fn document(json: &Json) -> Document {
    let draft = Draft {
        enabled: input(&json["enabled"], boolean),
        currency: input(&json["currency"], currency),
        accept_test_signals: FieldInput::Absent,
        windows: list(&json["windows"], window),
    };
    let mut faults = Faults::new();
    let document = validate(draft, &mut faults);
    document.unwrap_or_else(|| panic!("{faults}"))
}

fn server_events(json: &Json) -> Vec<ServerEvents> {
    let events = json.as_object().into_iter().flatten();
    events
        .flat_map(|(event, entries)| {
            let entries = entries.as_array().expect("a list").iter();
            entries.map(move |entry| ServerEvents {
                event: event.clone(),
                window: u8::try_from(integer(&entry["window"])).expect("a window"),
                count: integer(&entry["count"]),
                revenue: amount(&entry["revenue"]),
            })
        })
        .collect()
}

fn cached(table: &Json, json: &Json, fetched_at: Duration) -> Option<CachedDocument> {
    let json = match json {
        Json::Null => return None,
        Json::String(name) => &table["documents"][name],
        json => json,
    };
    let rates = json["rates"].as_object().into_iter().flatten();
    Some(CachedDocument {
        document: document(json),
        rates: rates
            .map(|(code, rate)| {
                let rate = RateValue::parse(&text(rate)).expect("a rate");
                (Currency::parse(code).expect("a currency"), rate)
            })
            .collect(),
        server: server_events(&json["server"]),
        fetched_at,
        max_age: json["maxAgeSeconds"]
            .as_u64()
            .map_or(DOCUMENT_AGE_MAX, Duration::from_secs),
    })
}

fn tracked(json: &Json) -> Option<TrackedEvent> {
    let name = json["name"].as_str()?.to_owned();
    let revenue = json.get("revenue").map(amount);
    let revenue = revenue.map(|revenue| (revenue, currency(&json["currency"])));
    Some(TrackedEvent { name, revenue })
}

fn expected(json: &Json) -> (usize, ConversionValueUpdate) {
    let small = |json: &Json| u8::try_from(integer(json)).expect("a small number");
    let update = ConversionValueUpdate {
        window: small(&json["window"]),
        fine: small(&json["fine"]),
        coarse: CoarseValue::parse(&text(&json["coarse"])).expect("a coarse value"),
        lock: boolean(&json["lock"]),
    };
    (usize::from(small(&json["after"])), update)
}

/// Returns the calls that a row makes, each with the index of its evaluation.
fn calls(table: &Json, row: &Json) -> Vec<(usize, ConversionValueUpdate)> {
    let mut device = cached(table, &row["document"], Duration::ZERO);
    let first = evaluate(
        device.as_ref(),
        &SkanDeviceState::default(),
        Duration::ZERO,
        None,
    );
    let mut state = first.state;
    let mut calls: Vec<_> = first.update.map(|update| (0, update)).into_iter().collect();
    let events = row["events"].as_array().expect("events").iter();
    for (position, entry) in events.enumerate() {
        let at = seconds(&entry["atSeconds"]);
        if let Some(fetched) = entry.get("fetch") {
            device = cached(table, fetched, at);
        }
        let next = evaluate(device.as_ref(), &state, at, tracked(entry).as_ref());
        state = next.state;
        calls.extend(next.update.map(|update| (position + 1, update)));
    }
    calls
}

#[test]
fn every_row_makes_exactly_its_calls() {
    let table = table();
    let rows = table["rows"].as_array().unwrap();
    assert!(rows.len() >= ROWS_MIN, "only {} rows", rows.len());
    let mut wrong = Vec::new();
    for row in rows {
        let expected: Vec<_> = row["expected"]
            .as_array()
            .unwrap()
            .iter()
            .map(expected)
            .collect();
        let found = calls(&table, row);
        if found != expected {
            wrong.push(format!("{}\n  {expected:?}\n  {found:?}", row["name"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn row_names_are_unique() {
    let table = table();
    let rows = table["rows"].as_array().unwrap();
    let names: std::collections::BTreeSet<_> = rows
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), rows.len());
}
