//! Senders that cannot prove who they are add a limited number of rows per day: postbacks without a
//! valid signature, and notifications with a wrong secret.

use crate::billing::Shop;
use crate::postbacks::{APP_STORE_ID, SKADNETWORK, create_advertised_app, list, post, skadnetwork};
use reqwest::Method;
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use tributary_domain::access::unverified_writes::UnverifiedWriteQuota;
use tributary_testkit::postbacks::test_keys;
use tributary_testkit::{Engine, TestServer, TestServerSettings, on_both_engines};

const PER_DAY: u32 = 10;
const PER_DAY_PER_ADDRESS: u32 = 4;

async fn server(engine: Engine) -> TestServer {
    let settings = TestServerSettings {
        postback_keys: test_keys(),
        proxies: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
        unverified_writes: UnverifiedWriteQuota {
            per_day: PER_DAY,
            per_day_per_address: PER_DAY_PER_ADDRESS,
        },
        ..TestServerSettings::default()
    };
    TestServer::start_with(engine, settings).await
}

/// Posts a forged postback from an address. It must get the response of a genuine one.
async fn post_forged(server: &TestServer, store_id: i64, number: u32, address: &str) {
    let mut postback = skadnetwork(number);
    postback["app-id"] = json!(store_id);
    postback["redownload"] = json!(true);
    let request = server.request(Method::POST, SKADNETWORK);
    let request = request.header("x-forwarded-for", address);
    let answer = server.send(request.body(postback.to_string())).await;
    assert_eq!(
        answer.expect(200).json(),
        json!({"data": {"status": "received"}})
    );
}

async fn count(server: &TestServer, table: &str) -> String {
    let rows = server.database.direct_connection().await;
    let rows = rows.rows(&format!("select count(*) from {table}")).await;
    rows[0][0].clone().unwrap()
}

on_both_engines! {
    async fn forged_postbacks_for_unknown_apps_do_not_fill_the_disk(engine: Engine) {
        let server = server(engine).await;
        for number in 0..20 {
            post_forged(&server, 700_000_000 + i64::from(number), number, "203.0.113.1").await;
        }
        assert_eq!(count(&server, "unclaimed_postbacks").await, "4", "the quota of an address");
        for number in 20..100 {
            let address = format!("2001:db8:0:{:x}::{number:x}", number / 10);
            post_forged(&server, 700_000_000 + i64::from(number), number, &address).await;
        }
        assert_eq!(count(&server, "unclaimed_postbacks").await, "10", "the quota of the day");
        server.clock.advance(Duration::from_hours(24));
        post_forged(&server, 800_000_000, 200, "203.0.113.1").await;
        assert_eq!(count(&server, "unclaimed_postbacks").await, "11", "the next day");
    }

    async fn used_up_quotas_do_not_affect_genuine_postbacks(engine: Engine) {
        let server = server(engine).await;
        let key = server.full_key().await;
        let app = create_advertised_app(&server, &key, APP_STORE_ID).await;
        for number in 0..50 {
            post_forged(&server, APP_STORE_ID, number, &format!("203.0.113.{number}")).await;
        }
        assert_eq!(list(&server, &app, &key, "signature=invalid").await.len(), 10);
        for number in 0..20 {
            post(&server, SKADNETWORK, skadnetwork(number).to_string()).await.expect(200);
        }
        assert_eq!(list(&server, &app, &key, "signature=valid").await.len(), 20);
    }

    async fn copies_with_other_unsigned_fields_are_limited(engine: Engine) {
        let server = server(engine).await;
        let key = server.full_key().await;
        let app = create_advertised_app(&server, &key, APP_STORE_ID).await;
        let mut postback = skadnetwork(1);
        for number in 0..50 {
            postback["relay"] = json!(number);
            post(&server, SKADNETWORK, postback.to_string()).await.expect(200);
        }
        let stored = list(&server, &app, &key, "").await;
        assert_eq!(stored.len(), 8);
        assert_eq!(stored.iter().filter(|one| one["counted"] == true).count(), 1);
    }

    async fn wrong_webhook_secrets_are_counted_up_to_the_quota(engine: Engine) {
        let server = server(engine).await;
        let shop = Shop::open(&server).await;
        for number in 0..30 {
            let headers = [("authorization", "wrong"), ("x-forwarded-for", "203.0.113.1")];
            let answer = shop.post("revenuecat", &headers, &format!("{{\"n\":{number}}}")).await;
            assert_eq!(answer.expect(401).code(), "webhook_unauthorized");
        }
        assert_eq!(shop.health("revenuecat").await["unauthorized"], 4);
    }
}
