//! A server whose clock passes 2038-01-19, where times in 32 bits end, and 2100-02-28, which is not
//! followed by a leap day.

use crate::billing::{Shop, event, with, with_payment};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tributary_domain::access::person::Role;
use tributary_domain::runtime::Clock as _;
use tributary_testkit::{TestServer, on_both_engines};

/// The last millisecond of 32-bit seconds: 2038-01-19T03:14:07.999Z.
const END_OF_32_BITS: i64 = 2_147_483_647_999;
/// 2100-02-28T23:59:59.999Z.
const END_OF_FEBRUARY_2100: i64 = 4_107_542_399_999;
const MINUTE: i64 = 60_000;
/// Events on each side of a boundary.
const EVENTS: usize = 3;

/// A moment that the clock passes.
struct Boundary {
    last_millisecond: i64,
    /// Days in UTC before and after it.
    days: [&'static str; 2],
    /// Start of the times shortly after it.
    after: &'static str,
}

const BOUNDARIES: [Boundary; 2] = [
    Boundary {
        last_millisecond: END_OF_32_BITS,
        days: ["2038-01-19", "2038-01-19"],
        after: "2038-01-19T03:1",
    },
    Boundary {
        last_millisecond: END_OF_FEBRUARY_2100,
        days: ["2100-02-28", "2100-03-01"],
        after: "2100-03-01T00:0",
    },
];

/// Advances the clock to a time.
fn advance_to(server: &TestServer, millis: i64) {
    let ahead = millis - server.clock.now().as_millis();
    server
        .clock
        .advance(Duration::from_millis(ahead.try_into().unwrap()));
}

/// Installs the app on a device, and sends one event of each source.
async fn use_app(shop: &Shop<'_>, device: &str) {
    shop.install(device).await;
    let now = shop.server.clock.now().as_millis();
    let sign_up =
        json!([{"eventId": format!("{device}-sdk"), "name": "sign_up", "timestampMs": now}]);
    let sent = shop
        .track("events", json!({"deviceId": device, "events": sign_up}))
        .await;
    assert_eq!(sent.expect(202).data()[0]["status"], "accepted");
    let paid = with_payment(
        event("INITIAL_PURCHASE", &format!("{device}-bill"), 0),
        &format!("{device}-t"),
        2.5,
    );
    let paid = with(
        paid,
        json!({
            "event_timestamp_ms": now, "purchased_at_ms": now, "app_user_id": device, "original_app_user_id": device,
            "aliases": [], "original_transaction_id": format!("{device}-sub"),
            "subscriber_attributes": {"tributaryId": {"value": device, "updated_at_ms": now}},
        }),
    );
    assert!(!shop.send_accepted(&paid).await);
}

async fn read(shop: &Shop<'_>, path: &str) -> Value {
    let path = format!("{}{path}", shop.app);
    shop.server.get(&path, &shop.key).await.expect(200).json()
}

/// Returns the log, oldest first, read in pages of two.
async fn paged_ids(shop: &Shop<'_>) -> Vec<String> {
    let (mut ids, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = read(shop, &format!("/events?limit=2{cursor}")).await;
        let page_ids = page["data"].as_array().unwrap().iter();
        ids.extend(page_ids.map(|one| one["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["meta"]["cursor"].as_str() else {
            ids.reverse();
            return ids;
        };
        cursor = format!("&cursor={next}");
    }
}

async fn check_reports(shop: &Shop<'_>, boundary: &Boundary, devices: usize) {
    let [from, to] = boundary.days;
    for unit in ["hour", "day", "week", "month"] {
        let report = read(
            shop,
            &format!("/stats?groupBy={unit}&from={from}&to={to}&timezone=UTC"),
        )
        .await;
        let totals = &report["meta"]["totals"];
        assert_eq!(totals["installs"], devices, "{unit}: {report}");
        assert_eq!(totals["signUps"], devices, "{unit}: {report}");
        assert_eq!(totals["purchases"], devices, "{unit}: {report}");
        let rows = report["data"].as_array().unwrap().iter();
        let sum: i64 = rows.map(|row| row["purchases"].as_i64().unwrap()).sum();
        assert_eq!(totals["purchases"], sum, "{unit}");
    }
    let report = read(
        shop,
        &format!("/stats?groupBy=day&from={from}&to={to}&timezone=UTC"),
    )
    .await;
    let days = report["data"].as_array().unwrap().iter();
    let mut days: Vec<&str> = days.map(|row| row["day"].as_str().unwrap()).collect();
    days.dedup();
    assert!(days.contains(&from) && days.contains(&to), "{days:?}");
    let cohorts = read(shop, &format!("/cohorts?from={from}&to={to}&timezone=UTC")).await;
    let cohorts = cohorts["data"].as_array().unwrap().iter();
    let installs: i64 = cohorts.map(|row| row["installs"].as_i64().unwrap()).sum();
    assert_eq!(installs, i64::try_from(devices).unwrap());
    read(shop, &format!("/overview?from={from}&to={to}")).await;
    let export = format!(
        "{}/export?format=csv&from={from}&to={to}&timezone=UTC",
        shop.app
    );
    let export = shop.server.get(&export, &shop.key).await.expect(200).text;
    assert!(export.contains(boundary.after), "{export}");
}

/// Requests the dashboard with a session. Returns the status.
async fn open_dashboard(server: &TestServer, cookie: &str) -> u16 {
    let request = server
        .request(Method::GET, "/account")
        .header("cookie", cookie);
    server.send(request).await.status.as_u16()
}

on_both_engines! {
    async fn nothing_changes_after_2038_and_2100(engine: Engine) {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        for boundary in &BOUNDARIES {
            let shop = Shop::open(&server).await;
            shop.connect().await;
            advance_to(&server, boundary.last_millisecond - 5 * MINUTE);
            let cookie = server.sign_in_as(organization, Role::Owner).await;
            for number in 0..EVENTS {
                use_app(&shop, &format!("before-{number}")).await;
            }
            advance_to(&server, boundary.last_millisecond + 1);
            assert_eq!(open_dashboard(&server, &cookie).await, 200, "the session is still valid");
            for number in 0..EVENTS {
                use_app(&shop, &format!("after-{number}")).await;
            }
            let log = shop.log().await;
            let times: Vec<i64> = log.iter().map(|one| one["timestampMs"].as_i64().unwrap()).collect();
            assert!(times.is_sorted(), "{times:?}");
            assert_eq!(times.iter().filter(|time| **time <= boundary.last_millisecond).count(), times.len() / 2);
            assert!(log.last().unwrap()["receivedAt"].as_str().unwrap().starts_with(boundary.after));
            let ids: Vec<&str> = log.iter().map(|one| one["id"].as_str().unwrap()).collect();
            assert!(ids.is_sorted(), "ids sort by time");
            assert_eq!(paged_ids(&shop).await, ids, "pages neither skip nor repeat");
            check_reports(&shop, boundary, 2 * EVENTS).await;
            println!("{engine:?}: {} events across {}", log.len(), boundary.days[1]);
            let deliveries = shop.deliveries().await;
            assert!(!deliveries.is_empty() && deliveries.values().all(|status| status == "pending"), "{deliveries:?}");
            let audit = server.get("/api/v1/audit-log?limit=1", &shop.key).await.expect(200).json();
            assert!(audit["data"][0]["at"].as_str().is_some_and(|at| at.len() == "2100-03-01T00:00:00.000Z".len()), "{audit}");
            server.clock.advance(Duration::from_hours(366 * 24));
            assert_ne!(open_dashboard(&server, &cookie).await, 200, "a session ends");
        }
        for day in server.store.rollup_days().await.unwrap() {
            assert_eq!(server.store.rebuild_rollups(day).await.unwrap().corrected_rows, 0, "{day:?}");
        }
    }
}
