//! Events: sending them (`POST /api/track/events`) and listing them
//! (`GET /api/v1/apps/{appId}/events`).

use super::track::SdkFixture;
use serde_json::{Value, json};
use std::time::Duration;
use tributary_testkit::on_both_engines;

/// Start time of every test clock, 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600_000;
const HOUR: i64 = 60 * 60 * 1_000;

fn statuses(outcomes: &Value) -> Vec<&str> {
    let outcomes = outcomes.as_array().unwrap().iter();
    outcomes
        .map(|outcome| outcome["status"].as_str().unwrap())
        .collect()
}

fn ids(log: &[Value]) -> Vec<&str> {
    log.iter()
        .map(|event| event["eventId"].as_str().unwrap())
        .collect()
}

/// Returns the revenue of the only event with this name.
async fn revenue(sdk: &SdkFixture, name: &str) -> Value {
    let log = sdk.log(&format!("&name={name}")).await;
    assert_eq!(log.len(), 1, "{log:?}");
    log[0]["revenue"].clone()
}

on_both_engines! {
    async fn stores_an_event_as_sent(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.configure("d1", json!({"userId": "u1"})).await;
        let event = json!({
            "eventId": "e1", "name": "Boss Defeated! 走る", "timestampMs": START - HOUR,
            "params": {"level": 7, "price": 1.10, "tags": ["a", null], "nested": {"x": "\u{1f600}"}},
        });
        let outcome = sdk.send("d1", json!([event])).await;
        assert_eq!(outcome, json!([{"eventId": "e1", "status": "accepted"}]));
        let log = sdk.log("&eventId=e1").await;
        assert!(log[0]["id"].as_str().unwrap().starts_with("evt_"));
        assert_eq!(log[0], json!({
            "id": log[0]["id"], "eventId": "e1", "name": "Boss Defeated! 走る", "source": "sdk", "environment": "live",
            "timestampMs": START - HOUR, "receivedAt": log[0]["receivedAt"], "deviceId": "d1", "userId": "u1",
            "revenue": null, "originalTransactionId": null, "sourceUrl": null, "duplicateOf": null, "deliveries": [], "params": event["params"],
            "attribution": {
                "network": "organic", "matchType": "organic", "linkId": null, "clickId": null, "hold": null,
                "campaign": {"id": null, "name": null, "adsetId": null, "adsetName": null, "adId": null, "adName": null},
            },
        }));
    }

    async fn numbers_keep_their_digits(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let body = r#"{"deviceId": "d1", "events": [{"eventId": "e1", "name": "a", "params": {"n": 9007199254740993.10}}]}"#;
        let request = sdk.server.request(reqwest::Method::POST, "/api/track/events").header("x-tributary-key", &sdk.live);
        sdk.server.send(request.header("content-type", "application/json").body(body)).await.expect(202);
        let log = sdk.server.get(&format!("{}/events", sdk.app), &sdk.key).await.expect(200);
        assert!(log.text.contains(r#""params":{"n":9007199254740993.10}"#), "{}", log.text);
    }

    async fn converts_a_purchase_to_dollars_at_the_rate_of_its_day(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.change_app(json!({"revenueEvents": ["eve", "new_year", "dollars", "inside"]})).await;
        let request = sdk.send("d1", json!([
            // On 2025-12-31 a euro was 1.175 dollars. No rate is published on 2026-01-01.
            {"name": "eve", "revenue": 9.99, "currency": "EUR", "timestampMs": START - HOUR},
            {"name": "new_year", "revenue": "9.99", "currency": "eur", "timestampMs": START},
            {"name": "dollars", "revenue": 9.990_000_000_000_002, "currency": "USD"},
            {"name": "inside", "params": {"revenue": "5.50", "currency": "USD"}},
        ])).await;
        assert_eq!(statuses(&request), ["accepted"; 4]);
        let expected = json!({
            "amount": 9.99, "currency": "EUR", "usd": 11.73825, "rateDate": "2025-12-31", "counted": true, "reason": null,
        });
        assert_eq!(revenue(&sdk, "eve").await, expected);
        assert_eq!(revenue(&sdk, "new_year").await, expected, "the latest earlier rate applies");
        let dollars = revenue(&sdk, "dollars").await;
        assert_eq!((&dollars["amount"], &dollars["usd"], &dollars["counted"]), (&json!(9.99), &json!(9.99), &json!(true)));
        assert_eq!(revenue(&sdk, "inside").await["usd"], json!(5.5));
        let text = sdk.server.get(&format!("{}/events?name=eve", sdk.app), &sdk.key).await.text;
        assert!(text.contains(r#""amount":9.99,"currency":"EUR","usd":11.73825,"#), "{text}");
    }

    async fn amounts_above_two_thousand_dollars_do_not_count(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.change_app(json!({"revenueEvents": ["most", "too_much"]})).await;
        sdk.send("d1", json!([
            {"name": "most", "revenue": "2000.00", "currency": "USD"},
            {"name": "too_much", "revenue": "2000.01", "currency": "USD"},
        ])).await;
        let most = revenue(&sdk, "most").await;
        assert_eq!((&most["amount"], &most["counted"], &most["reason"]), (&json!(2000), &json!(true), &json!(null)));
        let too_much = revenue(&sdk, "too_much").await;
        assert_eq!((&too_much["amount"], &too_much["counted"]), (&json!(2000.01), &json!(false)));
        assert_eq!(too_much["reason"], "over_limit", "the event is still stored");
    }

    async fn uncounted_revenue_is_stored_with_a_reason(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.send("d1", json!([
            {"name": "metal", "revenue": 1, "currency": "XAU"}, {"name": "silent", "revenue": 1},
            {"name": "negative", "revenue": -1, "currency": "USD"}, {"name": "zero", "revenue": 0, "currency": "USD"},
            {"name": "start_trial", "revenue": 5, "currency": "USD"},
            {"name": "add_to_cart", "revenue": 500, "currency": "USD"},
            {"name": "boss_defeated", "revenue": 7, "currency": "USD"},
            {"name": "renewal", "revenue": 7, "currency": "USD"}, {"name": "refund", "revenue": 7, "currency": "USD"},
        ])).await;
        for (name, reason) in [
            ("metal", "unconvertible"), ("silent", "unconvertible"), ("negative", "negative"), ("zero", "zero"),
            ("start_trial", "predicted"), ("add_to_cart", "not_income"), ("boss_defeated", "not_income"),
            ("renewal", "not_income"), ("refund", "not_income"),
        ] {
            let found = revenue(&sdk, name).await;
            assert_eq!((&found["counted"], &found["reason"]), (&json!(false), &json!(reason)), "{name}: {found}");
        }
        sdk.change_app(json!({"sdk": {"revenue": "ignore"}})).await;
        sdk.send("d1", json!([{"name": "ignored", "revenue": 1, "currency": "USD"}])).await;
        assert_eq!(revenue(&sdk, "ignored").await["reason"], "sdk_ignored");
        sdk.change_app(json!({"sdk": {"revenue": "auto"}, "billing": {"revenuecat": {"secret": "0123456789abcdef"}}})).await;
        sdk.send("d1", json!([{"name": "billed", "revenue": 1, "currency": "USD"}])).await;
        assert_eq!(revenue(&sdk, "billed").await["reason"], "billing_source");
    }

    async fn a_repeated_event_id_is_a_duplicate_and_the_first_wins(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let first = json!({"eventId": "e1", "name": "purchase", "revenue": 1, "currency": "USD"});
        assert_eq!(statuses(&sdk.send("d1", json!([first])).await), ["accepted"]);
        let other = json!({"eventId": "e1", "name": "sign_up", "revenue": 2, "currency": "EUR"});
        assert_eq!(sdk.send("d2", json!([other])).await, json!([{"eventId": "e1", "status": "duplicate"}]));
        let same_batch = json!([{"eventId": "e2", "name": "a"}, {"eventId": "e2", "name": "b"}, {"eventId": "e1", "name": "c"}]);
        assert_eq!(statuses(&sdk.send("d1", same_batch).await), ["accepted", "duplicate", "duplicate"]);
        let log = sdk.log("").await;
        assert_eq!(ids(&log), ["e2", "e1"]);
        assert_eq!((&log[1]["name"], &log[1]["revenue"]["amount"]), (&json!("purchase"), &json!(1)));
        assert_eq!(log[0]["name"], "a");
    }

    async fn an_event_sent_many_times_at_once_is_recorded_once(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let call = || sdk.send("d1", json!([{"eventId": "e1", "name": "a"}]));
        let answers = tokio::join!(call(), call(), call(), call());
        let answers = [answers.0, answers.1, answers.2, answers.3];
        let accepted = answers.iter().filter(|answer| answer[0]["status"] == "accepted").count();
        assert_eq!((accepted, sdk.log("").await.len()), (1, 1), "{answers:?}");
    }

    async fn an_invalid_event_does_not_affect_the_rest_of_its_batch(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let outcome = sdk.send("d1", json!([
            {"eventId": "e1", "name": "a"}, {"eventId": "e2"}, {"eventId": "e3", "name": "b", "revenue": "9,99"},
            5, {"eventId": "e4", "name": "c", "params": "x"}, {"eventId": "", "name": "d"},
            {"eventId": "e5", "name": "e", "params": {"x": "a\u{0}b"}}, {"eventId": "e6", "name": "x".repeat(256)},
            {"eventId": "e7", "name": "f", "params": {"x": "y".repeat(16 * 1024)}}, {"eventId": "e8", "name": "z"},
        ])).await;
        assert_eq!(statuses(&outcome), [
            "accepted", "rejected", "rejected", "rejected", "rejected", "rejected", "rejected", "rejected", "rejected",
            "accepted",
        ]);
        assert_eq!(outcome[1]["error"], json!({
            "code": "validation_failed", "message": "Event rejected; other events in the batch are not affected. See details.",
            "details": [{"field": "name", "code": "required", "message": "Required."}],
        }));
        assert_eq!(outcome[2]["error"]["details"][0]["field"], "revenue");
        assert_eq!((&outcome[1]["eventId"], &outcome[3]["eventId"]), (&json!("e2"), &json!(null)));
        assert_eq!(ids(&sdk.log("").await), ["e8", "e1"]);
        let all_bad = sdk.send("d1", json!([{}])).await;
        assert_eq!(statuses(&all_bad), ["rejected"]);
    }

    async fn a_batch_has_one_to_a_hundred_events(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let batch = |count: usize| {
            let events: Vec<Value> = (0..count).map(|_| json!({"name": "a"})).collect();
            json!({"deviceId": "d1", "events": events})
        };
        let faults = async |body: Value| sdk.call("events", &sdk.live, &body).await.expect(422).faults();
        let fault = |field: &str, code: &str| vec![(field.to_owned(), code.to_owned())];
        assert_eq!(faults(batch(0)).await, fault("events", "too_short"));
        assert_eq!(faults(batch(101)).await, fault("events", "too_long"));
        assert_eq!(faults(json!({"deviceId": "d1", "events": {}})).await, fault("events", "wrong_type"));
        assert_eq!(faults(json!({"events": [{"name": "a"}]})).await, fault("deviceId", "required"));
        assert!(sdk.log("").await.is_empty());
        let outcome = sdk.call("events", &sdk.live, &batch(100)).await.expect(202).data();
        let event_ids: std::collections::BTreeSet<&str> =
            outcome.as_array().unwrap().iter().map(|one| one["eventId"].as_str().unwrap()).collect();
        assert_eq!(event_ids.len(), 100, "each event gets its own id");
        assert_eq!(sdk.log("").await.len(), 100);
    }

    async fn clamps_timestamps_in_the_future(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.send("d1", json!([
            {"eventId": "far", "name": "a", "timestampMs": 9_223_372_036_854_775_807_i64},
            {"eventId": "near", "name": "a", "timestampMs": START + 60_000},
            {"eventId": "begin", "name": "a", "timestampMs": 1_420_070_400_000_i64}, {"eventId": "silent", "name": "a"},
        ])).await;
        let log = sdk.log("").await;
        assert_eq!(ids(&log), ["far", "near", "silent", "begin"]);
        let far = log[0]["timestampMs"].as_i64().unwrap();
        assert!((START + 600_000..START + 601_000).contains(&far), "{far}");
        let earliest = json!(1_420_070_400_000_i64);
        assert_eq!((&log[1]["timestampMs"], &log[3]["timestampMs"]), (&json!(START + 60_000), &earliest));
    }

    async fn rejects_a_timestamp_in_seconds_and_keeps_its_id_free(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let outcome = sdk.send("d1", json!([
            {"eventId": "good", "name": "a", "timestampMs": START},
            {"eventId": "seconds", "name": "purchase", "timestampMs": START / 1_000},
            {"eventId": "negative", "name": "a", "timestampMs": -1},
        ])).await;
        assert_eq!(statuses(&outcome), ["accepted", "rejected", "rejected"]);
        let detail = &outcome[1]["error"]["details"][0];
        assert_eq!((&detail["field"], &detail["code"]), (&json!("timestampMs"), &json!("out_of_range")));
        assert!(detail["message"].as_str().unwrap().contains("seconds"), "{detail}");
        let again = sdk.send("d1", json!([{"eventId": "seconds", "name": "purchase", "timestampMs": START}])).await;
        assert_eq!(statuses(&again), ["accepted"]);
    }

    async fn accepts_a_timestamp_written_as_a_float(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let send = async |id: &str, millis: &str| {
            let body = format!(
                r#"{{"deviceId": "d1", "events": [{{"eventId": "{id}", "name": "a", "timestampMs": {millis}}}]}}"#
            );
            let request = sdk.server.request(reqwest::Method::POST, "/api/track/events").header("x-tributary-key", &sdk.live);
            let request = request.header("content-type", "application/json").body(body);
            statuses(&sdk.server.send(request).await.expect(202).data())[0].to_owned()
        };
        for (id, millis) in [("float", "1767225000000.0"), ("exponent", "1.767225e12")] {
            assert_eq!(send(id, millis).await, "accepted", "{millis}");
            let log = sdk.log(&format!("&eventId={id}")).await;
            assert_eq!(log[0]["timestampMs"], json!(1_767_225_000_000_i64), "{millis}");
        }
        for millis in ["1767225000000.5", "\"1767225000000\"", "true", "-1.0"] {
            assert_eq!(send("odd", millis).await, "rejected", "{millis} is not a valid timestamp");
        }
    }

    async fn lists_old_events_without_a_date_filter(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.send("d1", json!([{"eventId": "old", "name": "a", "timestampMs": START - 90 * 24 * HOUR}])).await;
        assert_eq!(ids(&sdk.log("&eventId=old").await), ["old"]);
        assert_eq!(ids(&sdk.log("").await), ["old"]);
    }

    async fn filters_the_log(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        for (id, device, name, at) in [
            ("e1", "d1", "purchase", START - 25 * HOUR), ("e2", "d1", "sign_up", START - HOUR), ("e3", "d2", "purchase", START),
        ] {
            sdk.send(device, json!([{"eventId": id, "name": name, "timestampMs": at}])).await;
        }
        let found = async |query: &str| {
            let log = sdk.log(query).await;
            log.iter().map(|event| event["eventId"].as_str().unwrap().to_owned()).collect::<Vec<String>>()
        };
        assert_eq!(found("").await, ["e3", "e2", "e1"]);
        assert_eq!(found("&name=purchase").await, ["e3", "e1"]);
        assert_eq!(found("&name=PURCHASE").await, ["e3", "e1"], "standard names ignore case");
        assert_eq!(found("&deviceId=d1").await, ["e2", "e1"]);
        assert_eq!(found("&eventId=e2").await, ["e2"]);
        assert_eq!(found("&eventId=nothing").await, Vec::<String>::new());
        assert_eq!(found("&name=purchase&deviceId=d1").await, ["e1"]);
        assert_eq!(found("&from=2025-12-31&to=2025-12-31").await, ["e2"]);
        assert_eq!(found("&from=2026-01-01").await, ["e3"]);
        assert_eq!(found("&to=2025-12-30").await, ["e1"]);
        // An hour before midnight in London is midnight in Berlin.
        assert_eq!(found("&from=2026-01-01&timezone=Europe/Berlin").await, ["e3", "e2"]);
        assert_eq!(found("&to=2025-12-31&timezone=America/New_York").await, ["e3", "e2", "e1"]);
        sdk.change_app(json!({"timezone": "Europe/Berlin"})).await;
        assert_eq!(found("&from=2026-01-01").await, ["e3", "e2"], "days in the app's time zone");
        let analytics = sdk.server.get(&format!("{}/events?from=2026-01-01", sdk.app), &sdk.analytics_key).await.expect(200);
        assert_eq!(analytics.data().as_array().unwrap().len(), 2);
        for (query, field) in [
            ("from=2026-13-01", "from"), ("to=yesterday", "to"), ("from=2026-01-02&to=2026-01-01", "to"),
            ("timezone=Mars/Olympus", "timezone"), ("name=", "name"), ("eventId=", "eventId"), ("nmae=x", "nmae"),
            ("limit=501", "limit"), ("from=2026-01-01&from=2026-01-02", "from"),
        ] {
            let answer = sdk.server.get(&format!("{}/events?{query}", sdk.app), &sdk.key).await.expect(422);
            assert_eq!(answer.faults()[0].0, field, "{query}");
        }
    }

    async fn standard_names_ignore_case(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.send("d1", json!([{"eventId": "e1", "name": "Sign_Up"}, {"eventId": "e2", "name": "Boss"}])).await;
        for name in ["sign_up", "SIGN_UP", "Sign_Up"] {
            let log = sdk.log(&format!("&name={name}")).await;
            assert_eq!((ids(&log), &log[0]["name"]), (vec!["e1"], &json!("sign_up")), "{name}");
        }
        assert_eq!(ids(&sdk.log("&name=Boss").await), ["e2"]);
        assert!(sdk.log("&name=boss").await.is_empty(), "other names are case-sensitive");
    }

    async fn pages_the_log_and_binds_a_cursor_to_its_filters(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        let events: Vec<Value> = (0..25).map(|number| json!({"eventId": format!("e{number}"), "name": "a"})).collect();
        sdk.send("d1", json!(events)).await;
        let whole: Vec<String> = ids(&sdk.log("").await).into_iter().map(str::to_owned).collect();
        let page = async |query: &str, key: &str| sdk.server.get(&format!("{}/events?{query}", sdk.app), key).await;
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let answer = page(&format!("limit=10{cursor}"), &sdk.key).await.expect(200).json();
            seen.extend(answer["data"].as_array().unwrap().iter().map(|one| one["eventId"].as_str().unwrap().to_owned()));
            // New events sort before the pages that were already read.
            sdk.server.clock.advance(Duration::from_secs(1));
            sdk.send("d1", json!([{"name": "meanwhile"}])).await;
            match answer["meta"]["cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(seen, whole, "none skipped, none repeated");
        page(&format!("limit=10{cursor}"), &sdk.key).await.expect(200);
        for other in ["name=a", "deviceId=d1", "from=2026-01-01", "eventId=e1"] {
            let answer = page(&format!("{other}&limit=10{cursor}"), &sdk.key).await.expect(422);
            assert_eq!(answer.code(), "invalid_cursor", "{other}");
        }
        let test = page(&format!("limit=10{cursor}"), &sdk.test_key).await.expect(422);
        assert_eq!(test.code(), "invalid_cursor", "test data is a separate list");
    }
}
