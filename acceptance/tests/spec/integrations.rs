//! Integrations: `/api/v1/apps/{appId}/integrations` and `/{network}`.

use serde_json::{Value, json};
use tributary_testkit::{TestServer, on_both_engines};

fn mapped_events(integration: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let rows = integration["eventMapping"].as_array().unwrap();
    rows.iter()
        .map(|row| (text(&row["event"]), text(&row["networkEvent"])))
        .collect()
}

on_both_engines! {
    async fn the_list_always_has_the_four_networks(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let app = server.app(&key).await;
        let list = server.get(&format!("{app}/integrations"), &key).await.expect(200).json();
        let all = list["data"].as_array().unwrap();
        let of = |field: &str| all.iter().map(|one| one[field].clone()).collect::<Vec<_>>();
        assert_eq!(of("network"), ["network_a", "network_b", "network_c", "network_d"]);
        assert_eq!(of("kind"), ["social", "search", "short_video", "ai_assistant"]);
        assert_eq!(of("status"), ["not_configured"; 4]);
        assert_eq!(of("enabled"), [json!(false), json!(false), json!(false), json!(false)]);
        assert_eq!(of("scope"), ["attributed"; 4]);
        assert_eq!(list["meta"], json!({"hasMore": false, "cursor": null}));
        let health = json!({"pending": 0, "delivered24h": 0, "failed24h": 0, "lastDeliveredAt": null, "skipped7d": [], "skipped7dStoppedEarly": false});
        assert_eq!(of("health"), [health.clone(), health.clone(), health.clone(), health]);
        let mut paged = Vec::new();
        let mut next = format!("{app}/integrations?limit=3");
        loop {
            let page = server.get(&next, &key).await.expect(200).json();
            paged.push(page["data"].as_array().unwrap().len());
            let Some(cursor) = page["meta"]["cursor"].as_str() else { break };
            next = format!("{app}/integrations?limit=3&cursor={cursor}");
        }
        assert_eq!(paged, [3, 1]);
        server.get(&format!("{app}/integrations?limit=0"), &key).await.expect(422);
        server.get(&format!("{app}/integrations?cursor=x"), &key).await.expect(422);
        assert_eq!(mapped_events(&all[0]).len(), 8);
        assert!(mapped_events(&all[3]).contains(&("start_trial".to_owned(), "trial_started".to_owned())));
    }

    async fn connects_a_network(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let path = format!("{}/integrations/network_a", server.app(&key).await);
        let token = "EAAB-canary-token-9f2c";
        let body = json!({
            "enabled": true, "settings": {"pixelId": "1234567890"}, "credentials": {"accessToken": token},
        });
        let answer = server.patch(&path, &key, body).await.expect(200);
        assert!(!answer.text.contains("canary"), "credentials are never returned");
        let one = answer.data();
        assert_eq!(one["status"], "active");
        assert_eq!(one["credentials"]["accessToken"], json!({"set": true, "hint": "…9f2c"}));
        assert_eq!(one["credentials"]["appSecret"], json!({"set": false, "hint": null}));
        assert_eq!(one["settings"]["pixelId"], "1234567890");
        assert_eq!(one["settings"]["apiVersion"], "v26.0", "the default");
        assert_eq!(server.get(&path, &key).await.expect(200).data(), one);
        let off = server.patch(&path, &key, json!({"enabled": false})).await.expect(200).data();
        assert_eq!(off["status"], "paused");
        let removed = json!({"credentials": {"accessToken": null}});
        let removed = server.patch(&path, &key, removed).await.expect(200).data();
        assert_eq!(removed["status"], "not_configured");
        assert!(removed["statusReason"].as_str().unwrap().contains("accessToken"));
    }

    async fn each_network_has_its_own_settings(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let app = server.app(&key).await;
        let at = |network: &str| format!("{app}/integrations/{network}");
        let b = json!({
            "settings": {
                "operatingAccountId": "123", "clientId": "x.apps.example", "sdkEventSource": "WEB",
                "conversionActions": {"purchase": "456"}, "maxEventAge": 24,
            },
            "credentials": {"clientSecret": "s", "refreshToken": "r"},
        });
        let b = server.patch(&at("network_b"), &key, b).await.expect(200).data();
        assert_eq!(b["status"], "paused");
        assert_eq!(b["settings"]["conversionActions"], json!({"purchase": "456"}));
        assert_eq!(b["settings"]["maxEventAge"], 24);
        let of_other_networks = json!({"settings": {"pixelId": "1"}, "credentials": {"apiKey": "x"}});
        let answer = server.patch(&at("network_c"), &key, of_other_networks).await.expect(422);
        assert_eq!(answer.code(), "unknown_field");
        assert_eq!(answer.faults().len(), 2);
        let invalid = json!({
            "scope": "some",
            "settings": {"pixelId": "12 34", "apiVersion": "26", "sdkEventMode": "both", "limitedDataUse": "no",
                         "maxEventAge": 0, "testEventCode": ""},
            "credentials": {"accessToken": 5, "appSecret": ""},
        });
        let answer = server.patch(&at("network_a"), &key, invalid).await.expect(422);
        assert_eq!(answer.faults().len(), 9, "{answer:?}");
    }

    async fn normalises_mapping_rows_and_rejects_invalid_ones(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let app = server.app(&key).await;
        let path = format!("{app}/integrations/network_a");
        let rows = json!({"eventMapping": [{"event": "PURCHASE", "networkEvent": "Purchase"}]});
        let one = server.patch(&path, &key, rows).await.expect(200).data();
        assert_eq!(one["eventMapping"][0]["event"], "purchase");
        let path = format!("{app}/integrations/network_d");
        let rows = json!({"eventMapping": [{"event": "boss", "networkEvent": "Boss Defeated"}]});
        let answer = server.patch(&path, &key, rows).await.expect(422);
        let expected = ("eventMapping[0].networkEvent".to_owned(), "invalid_format".to_owned());
        assert_eq!(answer.faults(), [expected]);
    }

    async fn the_mapping_accepts_custom_names_and_is_replaced_as_a_whole(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let path = format!("{}/integrations/network_a", server.app(&key).await);
        let rows = json!({"eventMapping": [
            {"event": "boss_defeated", "networkEvent": "BossDefeated"},
            {"event": "purchase", "networkEvent": "Purchase", "enabled": false},
        ]});
        let one = server.patch(&path, &key, rows).await.expect(200).data();
        assert_eq!(one["eventMapping"], json!([
            {"event": "boss_defeated", "networkEvent": "BossDefeated", "enabled": true},
            {"event": "purchase", "networkEvent": "Purchase", "enabled": false},
        ]));
        let faulty = json!({"eventMapping": [
            {"event": "renewal", "networkEvent": "X"}, {"event": "refund", "networkEvent": "X"},
            {"event": "a", "networkEvent": "X"}, {"event": "a", "networkEvent": "X"},
            {"event": "", "networkEvent": "x".repeat(101)}, {"event": "b", "netEvent": "X"}, 5,
        ]});
        let answer = server.patch(&path, &key, faulty).await.expect(422);
        let fields: Vec<String> = answer.faults().into_iter().map(|(field, _)| field).collect();
        for field in [
            "eventMapping[0].event", "eventMapping[1].event", "eventMapping[3].event",
            "eventMapping[4].event", "eventMapping[4].networkEvent", "eventMapping[5].networkEvent",
            "eventMapping[5].netEvent", "eventMapping[6]",
        ] {
            assert!(fields.iter().any(|one| one == field), "{field}: {fields:?}");
        }
        let empty = server.patch(&path, &key, json!({"eventMapping": []})).await.expect(200).data();
        assert_eq!(empty["eventMapping"], json!([]), "absent rows are disabled");
        let reset = server.patch(&path, &key, json!({"eventMapping": null})).await.expect(200).data();
        assert_eq!(mapped_events(&reset).len(), 8, "null restores the default map");
    }
}
