//! Trying out web events: `POST /api/v1/apps/{appId}/web-events/validate`, and test links.

use super::billing_stripe::{STRIPE_SECRET, invoice, signature};
use crate::outbox::connect;
use crate::website::{BROWSER, SHOP, Website, with, without};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tributary_domain::access::{Environment, Permission};
use tributary_testkit::{Engine, TestResponse, TestServer, TextRow, on_both_engines};

/// A page on the developer's own computer.
const LOCAL: &str = "http://localhost:3000";

/// Every row of every table, except when keys were last used.
async fn all_rows(server: &TestServer) -> BTreeMap<String, Vec<TextRow>> {
    let direct = server.database.direct_connection().await;
    let tables = match direct.engine() {
        Engine::Sqlite => "select name from sqlite_schema where type = 'table'",
        Engine::Postgres => {
            "select table_name from information_schema.tables
             where table_schema = current_schema() and table_type = 'BASE TABLE'"
        }
    };
    let tables = direct.rows(tables).await.into_iter();
    let mut found = BTreeMap::new();
    for table in tables.filter_map(|row| row.into_iter().next()?) {
        if table == "api_keys" {
            continue;
        }
        let mut rows = direct.rows(&format!("select * from {table}")).await;
        rows.sort();
        found.insert(table, rows);
    }
    assert!(found.len() > 50, "{:?}", found.keys());
    assert!(!found["events"].is_empty() && !found["audit_log"].is_empty());
    found
}

/// What the API shows of an app: exports, audit log and figures.
async fn shown(site: &Website, server: &TestServer) -> Vec<String> {
    let mut texts = Vec::new();
    for path in [
        "/export?kind=events&format=ndjson&from=2025-12-01&to=2026-01-01",
        "/export?kind=clicks&format=ndjson&from=2025-12-01&to=2026-01-01",
        "/deliveries",
        "/stats?groupBy=network,link&from=2025-12-01&to=2026-01-01",
        "/overview?from=2025-12-01&to=2026-01-01",
    ] {
        texts.push(site.call("GET", path, Value::Null).await.expect(200).text);
    }
    let audit_log = server.get("/api/v1/audit-log?limit=500", &site.key).await;
    // An export adds an entry.
    let entries = audit_log.expect(200).data();
    let entries = entries.as_array().unwrap().iter();
    let entries: Vec<&Value> = entries
        .filter(|entry| entry["action"] != "data.exported")
        .collect();
    texts.push(format!("{entries:?}"));
    texts
}

/// Opens a website. Returns it with a live and with a test key.
async fn open(server: &TestServer) -> (Website, Website) {
    let organization = server.organization("Example").await;
    let live = server.key(organization, Permission::Full, Environment::Live);
    let site = Website::open_at(&format!("http://{}", server.address), &live.await).await;
    let test = server.key(organization, Permission::Full, Environment::Test);
    let key = test.await;
    let tester = Website {
        key,
        ..site.clone()
    };
    (site, tester)
}

impl Website {
    async fn validate(&self, event: &Value) -> TestResponse {
        let path = "/web-events/validate";
        self.call("POST", path, event.clone()).await
    }

    /// Creates a test link to the developer's own computer, and a click on it.
    async fn with_test_link(&self) -> Self {
        let link = json!({
            "name": "T", "type": "web_funnel", "test": true, "destinationUrl": format!("{LOCAL}/start"),
        });
        let link = self.create_link(link).await;
        let click = self.tap(&link, "fbclid=f1&campaign_id=238").await;
        Self {
            link,
            click,
            ..self.clone()
        }
    }
}

on_both_engines! {
    async fn a_valid_event_shows_what_is_then_recorded(engine: Engine) {
        let server = TestServer::start(engine).await;
        let (site, tester) = open(&server).await;
        connect(&site).await;
        let order = site.purchase("order-1", "49.90");
        let answer = tester.validate(&order).await.expect(200).data();
        assert_eq!(answer["status"], "valid");
        assert_eq!((&answer["duplicate"], &answer["firstPayment"]), (&json!(false), &json!(true)));
        assert_eq!(answer["click"], json!({
            "id": site.click, "linkId": site.link, "clickedAt": answer["click"]["clickedAt"],
            "network": "network_a", "credited": true, "reason": null,
        }));
        let delivery = &answer["event"]["deliveries"][0];
        let way = ["network", "networkEvent", "status", "reason"].map(|field| &delivery[field]);
        assert_eq!(way, [&json!("network_a"), &json!("Purchase"), &json!("pending"), &Value::Null]);

        site.send_accepted(&order).await;
        let mut recorded = site.logged_event("order-1").await;
        let mut shown = answer["event"].clone();
        for event in [&mut recorded, &mut shown] {
            for field in ["id", "receivedAt"] {
                event[field] = Value::Null;
            }
            for field in ["id", "nextAttemptAt"] {
                event["deliveries"][0][field] = Value::Null;
            }
        }
        assert_eq!(shown, recorded);

        let repeated = tester.validate(&order).await.expect(200).data();
        assert_eq!((&repeated["status"], &repeated["duplicate"]), (&json!("valid"), &json!(true)));
        assert_eq!(repeated["event"]["revenue"], recorded["revenue"]);
        assert_eq!(repeated["event"].get("deliveries"), None);
        assert_eq!(repeated["click"]["reason"], "duplicate");
        let refund = tester.validate(&site.refund("refund-1", "-9.90", "order-1")).await.expect(200).data();
        assert_eq!(refund["event"]["revenue"]["usd"], -9.9);
        assert_eq!(refund["event"]["deliveries"][0]["reason"], "reporting_only");
        assert_eq!(refund["click"]["reason"], "original_transaction");
    }

    async fn a_valid_event_names_the_events_that_stop_counting(engine: Engine) {
        let server = TestServer::start(engine).await;
        let (site, tester) = open(&server).await;
        let secret = json!({"billing": {"stripe": {"secret": STRIPE_SECRET}}});
        site.call("PATCH", "", secret).await.expect(200);
        let body = invoice("in_1", 0, "subscription_create", 999).to_string();
        let path = format!("/api/webhook/stripe/{}", site.app.rsplit('/').next().unwrap());
        let request = server.request(reqwest::Method::POST, &path);
        let request = request.header("stripe-signature", signature(&server, &body));
        server.send(request.body(body)).await.expect(200);
        let billed = site.logged_event("evt_in_1").await;
        assert_eq!(billed["duplicateOf"], Value::Null);

        let (order, before) = (site.purchase("in_1", "9.99"), all_rows(&server).await);
        let answer = tester.validate(&order).await.expect(200).data();
        assert_eq!(answer["replaces"], json!([
            {"id": billed["id"], "eventId": "evt_in_1", "source": "billing", "name": "purchase"},
        ]));
        assert_eq!(answer["event"]["revenue"]["counted"], true);
        let other = tester.validate(&site.purchase("order-1", "9.99")).await.expect(200).data();
        assert_eq!(other["replaces"], json!([]));
        assert_eq!(all_rows(&server).await, before);

        site.send_accepted(&order).await;
        let replaced = site.logged_event("evt_in_1").await;
        assert_eq!(replaced["duplicateOf"], site.logged_event("in_1").await["id"]);
        assert_eq!(replaced["revenue"]["reason"], "duplicate_of_verified");
        let repeated = tester.validate(&order).await.expect(200).data();
        assert_eq!((&repeated["duplicate"], &repeated["replaces"]), (&json!(true), &json!([])));
    }

    async fn validation_stores_nothing(engine: Engine) {
        let server = TestServer::start(engine).await;
        let (site, tester) = open(&server).await;
        connect(&site).await;
        let local = site.with_test_link().await;
        site.send_accepted(&site.purchase("order-1", "10")).await;
        site.send_accepted(&site.refund("refund-1", "-4", "order-1")).await;
        let on_page = |event: Value| with(&event, "sourceUrl", format!("{LOCAL}/paid"));
        let events = [
            site.purchase("order-1", "10"),
            site.purchase("order-2", "10"),
            site.purchase("order-1", "11"),
            site.child("renewal-1", "renewal", "10", "order-1"),
            site.refund("refund-2", "-6", "order-1"),
            site.refund("refund-2", "-7", "order-1"),
            site.event("sign-up-1", "sign_up"),
            on_page(local.purchase("order-3", "10")),
        ];
        let (shown_before, before) = (shown(&site, &server).await, all_rows(&server).await);
        for caller in [&site, &tester] {
            let mut statuses = Vec::new();
            for event in &events {
                statuses.push(caller.validate(event).await.status.as_u16());
            }
            assert_eq!(statuses, [200, 200, 422, 200, 200, 422, 200, 200]);
        }
        assert_eq!(all_rows(&server).await, before);
        assert_eq!(shown(&site, &server).await, shown_before);
    }

    async fn errors_are_those_of_web_events(engine: Engine) {
        let server = TestServer::start(engine).await;
        let (site, tester) = open(&server).await;
        site.send_accepted(&site.purchase("order-1", "10")).await;
        let organic = site.tap(&site.link, "").await;
        let of_a_bot = site.tap_as(&site.link, "fbclid=f1", "Googlebot/2.1").await;
        let order = site.purchase("order-2", "10");
        let refund = site.refund("refund-1", "-4", "order-1");
        let refused = [
            json!({}),
            with(&order, "color", "red"),
            with(&order, "currency", "XYZ"),
            with(&order, "sourceUrl", "http://shop.example.com/"),
            with(&order, "originalTransactionId", "order-1"),
            with(&order, "timestampMs", order["timestampMs"].as_i64().unwrap() - 700_000),
            site.purchase("order-1", "11"),
            with(&order, "arClickId", "clk_forged"),
            with(&order, "arClickId", organic),
            with(&order, "arClickId", of_a_bot),
            with(&order, "sourceUrl", "https://evil.example/"),
            with(&order, "sourceUrl", format!("{LOCAL}/paid")),
            with(&refund, "originalTransactionId", "nothing"),
            with(&refund, "originalTransactionId", "refund-1"),
            with(&refund, "revenue", "-11"),
            with(&refund, "currency", "EUR"),
        ];
        let error_of = |answer: &TestResponse| without(&answer.json()["error"], "requestId");
        for event in &refused {
            let expected = site.send(event).await;
            assert!(expected.status.is_client_error(), "{event}: {expected:?}");
            for caller in [&site, &tester] {
                let answer = caller.validate(event).await;
                assert_eq!(answer.status, expected.status, "{event}: {answer:?}");
                assert_eq!(error_of(&answer), error_of(&expected), "{event}");
            }
        }
        let unknown = Website { app: "/api/v1/apps/app_x".to_owned(), ..tester.clone() };
        assert_eq!(unknown.validate(&order).await.code(), "app_not_found");
        site.set_web_events(false).await;
        assert_eq!(tester.validate(&order).await.expect(403).code(), "web_events_disabled");
    }

    async fn clicks_on_test_links_are_only_validated(engine: Engine) {
        let server = TestServer::start(engine).await;
        let (site, tester) = open(&server).await;
        let before = shown_figures(&site, &tester).await;
        let local = site.with_test_link().await;
        assert_eq!(shown_figures(&site, &tester).await, before);

        let order = with(&local.purchase("order-1", "10"), "sourceUrl", format!("{LOCAL}/paid"));
        let valid = tester.validate(&order).await.expect(200).data();
        assert_eq!(valid["event"]["attribution"]["linkId"], json!(local.link));
        assert_eq!((&valid["click"]["credited"], &valid["click"]["reason"]), (&json!(false), &json!("test_link")));
        let refused = site.send(&order).await.expect(422);
        assert_eq!(refused.code(), "test_click");
        let message = refused.json()["error"]["message"].to_string();
        assert!(message.contains("test link") && message.contains("web-events/validate"), "{message}");
        // The same link may lead to the site itself.
        let moved = json!({"destinationUrl": SHOP});
        site.call("PATCH", &format!("/links/{}", local.link), moved).await.expect(200);
        let order = local.purchase("order-1", "10");
        tester.validate(&order).await.expect(200);
        assert_eq!(site.send(&order).await.expect(422).code(), "test_click");
        assert_eq!(shown_figures(&site, &tester).await, before);
        assert!(site.log().await.is_empty());
        let stored = server.database.direct_connection().await;
        let stored = stored.rows("select bot from clicks where bot is not null").await;
        assert_eq!(stored, [[Some("test_link".to_owned())]]);
    }

    async fn only_test_links_lead_to_the_own_computer(engine: Engine) {
        let server = TestServer::start(engine).await;
        let (site, _) = open(&server).await;
        let link = |test: bool, url: &str| {
            json!({"name": "L", "type": "web_funnel", "test": test, "destinationUrl": url})
        };
        let to = |host: &str| format!("http://{host}/start?x=1");
        for host in ["localhost", "localhost:3000", "127.0.0.1:8000", "[::1]:8080"] {
            let refused = site.call("POST", "/links", link(false, &to(host))).await.expect(422);
            assert_eq!(refused.faults(), [("destinationUrl".to_owned(), "not_allowed".to_owned())]);
            let created = site.call("POST", "/links", link(true, &to(host))).await.expect(201).data();
            assert_eq!((&created["test"], &created["destinationUrl"]), (&json!(true), &json!(to(host))));
            let request = server.request(reqwest::Method::GET, &format!("/w/{}", created["slug"].as_str().unwrap()));
            let answer = server.send(request.header("user-agent", BROWSER)).await.expect(302);
            assert!(answer.header("location").unwrap().starts_with(&to(host)), "{answer:?}");
        }
        for host in ["example.com", "127.0.0.2", "0.0.0.0", "192.168.0.2", "localhost.example.com", "x.localhost"] {
            let refused = site.call("POST", "/links", link(true, &to(host))).await.expect(422);
            assert_eq!(refused.faults(), [("destinationUrl".to_owned(), "invalid_format".to_owned())], "{host}");
        }
        for field in ["iosUrl", "androidUrl", "fallbackUrl"] {
            let body = json!({"name": "L", "test": true, field: to("localhost")});
            assert_eq!(site.call("POST", "/links", body).await.expect(422).faults()[0].0, field);
        }
        let local = site.with_test_link().await;
        for (id, test) in [(&site.link, true), (&local.link, false)] {
            let path = format!("/links/{id}");
            let refused = site.call("PATCH", &path, json!({"test": test})).await.expect(422);
            assert_eq!(refused.faults(), [("test".to_owned(), "not_allowed".to_owned())]);
            site.call("PATCH", &path, json!({"test": !test, "name": "Renamed"})).await.expect(200);
        }
        let moved = json!({"destinationUrl": to("localhost")});
        site.call("PATCH", &format!("/links/{}", site.link), moved).await.expect(422);
    }
}

/// The figures by link of both environments.
async fn shown_figures(site: &Website, tester: &Website) -> [Value; 2] {
    let path = "/stats?groupBy=link&from=2025-12-01&to=2026-01-01";
    let live = site.call("GET", path, Value::Null).await;
    let test = tester.call("GET", path, Value::Null).await;
    [live, test].map(|answer| answer.expect(200).data())
}
