//! Web events: validation of each field by event type.

use crate::website::{START, Website, with, without};
use serde_json::{Value, json};
use tributary_testkit::{TestServer, on_both_engines};

fn fault(field: &str, code: &str) -> Vec<(String, String)> {
    vec![(field.to_owned(), code.to_owned())]
}

/// Builds a valid event of every type.
fn one_of_each(site: &Website) -> Vec<Value> {
    vec![
        site.purchase("p", "10"),
        site.child("n", "renewal", "10", "p"),
        site.refund("r", "-10", "p"),
        site.event("s", "sign_up"),
        site.priced("c", "checkout_started", "10"),
        site.priced("t", "start_trial", "10"),
    ]
}

on_both_engines! {
    async fn revenue_is_positive_for_payments_and_negative_for_refunds(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let events = one_of_each(&site);
        let [purchase, renewal, refund, sign_up, checkout, trial] = events.as_slice() else { unreachable!() };
        // Zero-value receipts must not be sent.
        for amount in ["0", "0.00", "-0", "-10"] {
            for payment in [purchase, renewal] {
                let event = with(payment, "revenue", amount);
                assert_eq!(site.send_invalid(&event).await, fault("revenue", "must_be_positive"), "{event}");
            }
        }
        for amount in ["0", "10"] {
            assert_eq!(site.send_invalid(&with(refund, "revenue", amount)).await, fault("revenue", "must_be_negative"));
        }
        for priced in [checkout, trial] {
            let event = with(priced, "revenue", "-0.01");
            assert_eq!(site.send_invalid(&event).await, fault("revenue", "must_not_be_negative"), "{event}");
        }
        for amount in ["10", "-10"] {
            assert_eq!(site.send_invalid(&with(sign_up, "revenue", amount)).await, fault("revenue", "must_be_zero"));
        }
        assert_eq!(site.log().await, Vec::<Value>::new());
        for event in [checkout, trial] {
            let free = with(&with(event, "revenue", 0), "eventId", format!("{}-free", event["eventType"]));
            site.send_accepted(&free).await;
        }
        site.send_accepted(&with(&with(sign_up, "revenue", "0.0"), "eventId", "s-0")).await;
        let in_dollars = with(&with(sign_up, "revenue", 0), "currency", "USD");
        site.send_accepted(&with(&in_dollars, "eventId", "s-1")).await;
        for event in &events {
            site.send_accepted(event).await;
        }
        assert_eq!(site.log().await.len(), events.len() + 4);
    }

    async fn revenue_and_currency_are_required_except_for_sign_up(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        for event in one_of_each(&site).iter().filter(|event| event["eventType"] != "sign_up") {
            for field in ["revenue", "currency"] {
                assert_eq!(site.send_invalid(&without(event, field)).await, fault(field, "required"), "{event}");
                assert_eq!(site.send_invalid(&with(event, field, Value::Null)).await, fault(field, "required"), "{event}");
            }
        }
    }

    async fn original_transaction_id_is_required_on_renewal_and_refund_and_rejected_elsewhere(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        for event in one_of_each(&site) {
            let has_parent = event["eventType"] == "renewal" || event["eventType"] == "refund";
            let (event, code) = if has_parent {
                (without(&event, "originalTransactionId"), "required")
            } else {
                (with(&event, "originalTransactionId", "p"), "not_allowed")
            };
            assert_eq!(site.send_invalid(&event).await, fault("originalTransactionId", code), "{event}");
        }
    }

    async fn every_other_field_except_the_hash_is_required(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        for field in ["eventId", "arClickId", "deviceId", "timestampMs", "eventType", "sourceUrl"] {
            let event = without(&site.purchase("p", "10"), field);
            assert_eq!(site.send_invalid(&event).await, fault(field, "required"));
        }
        let answer = site.send(&json!({})).await.expect(422);
        assert_eq!(answer.faults().len(), 6, "all missing fields at once: {answer:?}");
        let answer = site.send(&with(&site.purchase("p", "10"), "price", 5)).await.expect(422);
        assert_eq!((answer.code().as_str(), answer.faults()), ("unknown_field", fault("price", "unknown_field")));
        let many = json!({
            "eventId": "", "arClickId": site.click, "deviceId": 5, "timestampMs": "now", "eventType": "refund",
            "revenue": 10, "currency": "XYZ", "sourceUrl": "http://shop.example.com/", "emailSha256": "a@b.c",
        });
        let faulty = site.send_invalid(&many).await;
        let fields: Vec<&str> = faulty.iter().map(|(field, _)| field.as_str()).collect();
        for field in [
            "eventId", "deviceId", "timestampMs", "revenue", "currency", "sourceUrl", "originalTransactionId",
            "emailSha256",
        ] {
            assert_eq!(fields.iter().filter(|one| **one == field).count(), 1, "{field}: {faulty:?}");
        }
        assert_eq!(site.log().await, Vec::<Value>::new());
    }

    async fn event_type_is_one_of_six(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        for kind in ["subscribe", "Purchase", "install", "qualified_trial", "", "purchase "] {
            let event = with(&site.purchase("p", "10"), "eventType", kind);
            let faults = site.send_invalid(&event).await;
            assert_eq!((faults.len(), faults[0].0.as_str()), (1, "eventType"), "{kind}: {faults:?}");
        }
    }

    async fn revenue_is_a_number_or_a_decimal_string_of_at_most_six_decimals_and_twelve_digits(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        for (number, revenue) in [
            json!(49.99), json!("49.99"), json!(1), json!("0.000001"), json!("999999999999.999999"), json!(1e2),
            json!("0049.990000"), json!(0.300_000_000_000_000_04), json!(9.990_000_000_000_002),
        ].into_iter().enumerate() {
            site.send_accepted(&with(&site.purchase(&format!("p{number}"), "1"), "revenue", revenue)).await;
        }
        for revenue in [
            json!("0.0000001"), json!("1000000000000"), json!("49,99"), json!("$5"), json!(""), json!(" 5"),
            json!("+5"), json!("0x5"), json!("NaN"), json!(true), json!([5]), json!("1e13"),
            json!("1e2"), json!("49.9900000"), json!("0000000000005"),
        ] {
            let faults = site.send_invalid(&with(&site.purchase("x", "1"), "revenue", revenue.clone())).await;
            assert_eq!((faults.len(), faults[0].0.as_str()), (1, "revenue"), "{revenue}: {faults:?}");
        }
        let largest = site.logged_event("p4").await["revenue"].clone();
        assert_eq!((&largest["counted"], &largest["reason"]), (&json!(false), &json!("over_limit")));
        // Float noise is rounded away, so a retry without it has the same payload.
        assert_eq!(site.logged_event("p7").await["revenue"]["amount"], json!(0.3));
        assert_eq!(site.logged_event("p8").await["revenue"]["amount"], json!(9.99));
        let again = with(&site.purchase("p7", "1"), "revenue", "0.3");
        assert_eq!(site.send(&again).await.expect(202).data()["duplicate"], true);
    }

    async fn currency_is_a_current_iso_4217_code(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        for (number, currency) in ["USD", "EUR", "JPY", "KWD", "eur"].into_iter().enumerate() {
            site.send_accepted(&with(&site.purchase(&format!("p{number}"), "5"), "currency", currency)).await;
        }
        for currency in ["XAU", "DEM", "US", "USDT", "", "$", "XXX"] {
            let faults = site.send_invalid(&with(&site.purchase("x", "5"), "currency", currency)).await;
            assert_eq!((faults.len(), faults[0].0.as_str()), (1, "currency"), "{currency}: {faults:?}");
        }
    }

    async fn source_url_is_https_without_credentials_fragment_and_query(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        for url in [
            "http://shop.example.com/", "https://u@shop.example.com/", "https://u:p@shop.example.com/",
            "https://shop.example.com/#paid", "https://shop.example.com/?a=b", "https://shop.example.com/?",
            "https://shop.example.com/#", "//shop.example.com/", "shop.example.com", "", "https://", "ftp://x.test/",
            "javascript:alert(1)", " https://shop.example.com/", "https:\\\\shop.example.com\\", "https://shop.example.com/\u{0}",
        ] {
            let faults = site.send_invalid(&with(&site.purchase("x", "5"), "sourceUrl", url)).await;
            assert_eq!((faults.len(), faults[0].0.as_str()), (1, "sourceUrl"), "{url}: {faults:?}");
        }
        let long = format!("https://shop.example.com/{}", "x".repeat(2_000));
        assert_eq!(site.send_invalid(&with(&site.purchase("x", "5"), "sourceUrl", long)).await, fault("sourceUrl", "too_long"));
    }

    async fn timestamp_ms_is_at_most_ten_minutes_ahead_and_ten_minutes_before_the_click(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        // The test clock is slightly past `START` by now.
        for (id, at) in [("ahead", START + 600_000), ("before-the-click", START - 590_000)] {
            site.send_accepted(&with(&site.event(id, "sign_up"), "timestampMs", at)).await;
            assert_eq!(site.logged_event(id).await["timestampMs"], at);
        }
        for at in [
            json!(START + 660_000), json!(-1), json!(i64::MAX), json!(1.5), json!("0"), json!(u64::MAX), json!(0),
            json!(START / 1_000), json!(START - 660_000), json!(1_420_070_399_999_i64),
        ] {
            let faults = site.send_invalid(&with(&site.event("x", "sign_up"), "timestampMs", at.clone())).await;
            assert_eq!((faults.len(), faults[0].0.as_str()), (1, "timestampMs"), "{at}: {faults:?}");
        }
    }

    async fn a_placeholder_device_id_is_accepted_and_flagged(engine: Engine) {
        let server = TestServer::start(engine).await;
        let (site, reader) = Website::open_with_reader(&server).await;
        let zeros = "00000000-0000-0000-0000-000000000000";
        site.send_accepted(&with(&site.purchase("placeholder", "5"), "deviceId", zeros)).await;
        let event = site.logged_event("placeholder").await;
        assert_eq!((&event["deviceId"], &event["deviceIdPlaceholder"]), (&json!(zeros), &json!(true)));
        let figures = site.figures(&server, &reader).await["network_a"];
        assert_eq!((figures.revenue_micros, figures.paying_devices), (5_000_000, 0));
        site.send_accepted(&site.purchase("device", "5")).await;
        assert_eq!(site.logged_event("device").await.get("deviceIdPlaceholder"), None);
        assert_eq!(site.figures(&server, &reader).await["network_a"].paying_devices, 1);
    }

    async fn email_sha256_is_a_hash_and_never_an_address(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        let hash = "AB".repeat(32);
        site.send_accepted(&with(&site.event("s", "sign_up"), "emailSha256", hash.as_str())).await;
        let lower = with(&site.event("s", "sign_up"), "emailSha256", hash.to_lowercase());
        assert_eq!(site.send(&lower).await.expect(202).data()["duplicate"], true, "the same hash in lower case");
        for hash in ["person@example.com", "", "ab", &"g".repeat(64), &"a".repeat(63), &"a".repeat(65)] {
            let answer = site.send(&with(&site.event("x", "sign_up"), "emailSha256", hash)).await.expect(422);
            assert_eq!(answer.faults(), fault("emailSha256", "invalid_format"), "{hash}");
            assert!(hash.len() < 5 || !answer.text.contains(hash), "the response must not contain the value");
        }
        let rows = server.database.direct_connection().await.rows("select email_sha256 from events").await;
        assert_eq!(rows, [[Some("ab".repeat(32))]]);
    }

    async fn ids_have_a_minimum_and_a_maximum_length(engine: Engine) {
        let server = TestServer::start(engine).await;
        let site = Website::open(&server).await;
        for field in ["eventId", "deviceId", "originalTransactionId"] {
            let event = site.child("n", "renewal", "5", "p");
            for text in [String::new(), "x".repeat(256), "a\u{0}b".to_owned()] {
                let faults = site.send_invalid(&with(&event, field, text)).await;
                assert_eq!((faults.len(), faults[0].0.as_str()), (1, field), "{faults:?}");
            }
        }
        let device = "visitor-of-the-shop".repeat(13) + "-is-here";
        assert_eq!(device.len(), 255);
        site.send_accepted(&with(&site.purchase(&"x".repeat(255), "5"), "deviceId", device)).await;
        site.send_accepted(&site.purchase("Order #7 \u{2713} \u{8d70}", "5")).await;
        site.logged_event("Order #7 \u{2713} \u{8d70}").await;
    }
}
