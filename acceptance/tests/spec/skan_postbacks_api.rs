//! Postbacks in the REST API, `/api/v1/apps/{appId}/skan/…`: lists, figures, decoded values and
//! the evaluation of documents.

use crate::postbacks::{
    ADATTRIBUTIONKIT, APP_STORE_ID, PRODUCTION, SKADNETWORK, adattributionkit,
    create_advertised_app, list, post, server, skadnetwork, with_fields,
};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tributary_testkit::{TestServer, on_both_engines};

const DAY: Duration = Duration::from_hours(24);

async fn put(server: &TestServer, app: &str, key: &str, document: &Value) {
    let request = server
        .request(Method::PUT, &format!("{app}/skan"))
        .bearer_auth(key);
    let request = request
        .header("content-type", "application/json")
        .body(document.to_string());
    server.send(request).await.expect(200);
}

fn document(name: &str, event: &str) -> Value {
    json!({"enabled": true, "windows": [{"index": 0, "values": [
        {"name": name, "fineValue": 63, "coarseValue": "high",
         "conditions": [{"event": event, "minCount": 1, "minRevenue": 50, "maxRevenue": 100}]},
        {"name": "Install", "fineValue": 0, "coarseValue": "low", "conditions": [{"event": "install", "minCount": 1}]},
    ]}]})
}

/// Posts postbacks of many kinds and returns how many count.
async fn post_variants(server: &TestServer) -> usize {
    let mut number = 0;
    for source in ["5239", "1239", "239", "39", "40"] {
        for value in [
            json!({"conversion-value": 63}),
            json!({"conversion-value": 5}),
            json!({"conversion-value": null}),
        ] {
            for network in ["example123.skadnetwork", "Other.skadnetwork"] {
                number += 1;
                let fields = json!({"source-identifier": source, "ad-network-id": network, "did-win": number % 7 != 0});
                let body = with_fields(with_fields(skadnetwork(number), &fields), &value);
                post(server, SKADNETWORK, body.to_string())
                    .await
                    .expect(200);
                server.clock.advance(Duration::from_hours(7));
            }
        }
    }
    number as usize
}

/// Counts the postbacks of a list that count, grouped by some fields.
fn counted_by(items: &[Value], fields: &[&str]) -> BTreeMap<String, i64> {
    let mut counts = BTreeMap::new();
    for item in items.iter().filter(|item| item["counted"] == true) {
        let key: Vec<&Value> = fields.iter().map(|field| &item[*field]).collect();
        *counts
            .entry(json!(key).to_string().to_lowercase())
            .or_default() += 1;
    }
    counts
}

on_both_engines! {
    async fn groups_figures_by_the_meaning_of_their_values(engine: Engine) {
        let server = server(engine).await;
        let key = server.full_key().await;
        let app = create_advertised_app(&server, &key, APP_STORE_ID).await;
        put(&server, &app, &key, &document("Paid", "purchase")).await;
        server.clock.advance(DAY);
        post(&server, SKADNETWORK, skadnetwork(1).to_string()).await.expect(200);
        post(&server, SKADNETWORK, with_fields(skadnetwork(2), &json!({"conversion-value": 0})).to_string()).await.expect(200);
        post(&server, SKADNETWORK, with_fields(skadnetwork(3), &json!({"conversion-value": null})).to_string()).await.expect(200);
        post(&server, SKADNETWORK, with_fields(skadnetwork(4), &json!({"conversion-value": 5})).to_string()).await.expect(200);
        put(&server, &app, &key, &document("Trial", "start_trial")).await;
        server.clock.advance(DAY);
        post(&server, SKADNETWORK, skadnetwork(5).to_string()).await.expect(200);
        post(&server, SKADNETWORK, with_fields(skadnetwork(6), &json!({"conversion-value": 0})).to_string()).await.expect(200);
        server.clock.advance(49 * DAY);
        post(&server, SKADNETWORK, skadnetwork(7).to_string()).await.expect(200);
        let path = format!("{app}/skan/stats?groupBy=meaning&from=2026-01-01");
        let answer = server.get(&path, &key).await.expect(200).json();
        let rows: BTreeMap<String, i64> = answer["data"].as_array().unwrap().iter()
            .map(|row| (row["meaning"].to_string(), row["installs"].as_i64().unwrap())).collect();
        let means = |status: &str, names: &[&str]| json!({"status": status, "names": names}).to_string();
        assert_eq!(rows, BTreeMap::from([
            (means("decoded", &["Paid"]), 1), (means("decoded", &["Install"]), 2), (means("withheld", &[]), 1),
            (means("undecoded", &[]), 1), (means("ambiguous", &[]), 1), (means("decoded", &["Trial"]), 1),
        ]));
        assert_eq!(answer["meta"]["totals"]["installs"], 7);
    }

    async fn figures_agree_with_the_list(engine: Engine) {
        let server = server(engine).await;
        let key = server.full_key().await;
        let app = create_advertised_app(&server, &key, APP_STORE_ID).await;
        let count = post_variants(&server).await;
        post(&server, SKADNETWORK, skadnetwork(1).to_string().replace("5239", "5230")).await.expect(200);
        let items = list(&server, &app, &key, "").await;
        assert_eq!(items.len(), count + 1);
        for group in ["adNetworkId", "sourceIdentifier", "fineValue", "coarseValue", "sequenceIndex", "protocol", "fineValue,adNetworkId"] {
            let fields: Vec<&str> = group.split(',').collect();
            let answer = server.get(&format!("{app}/skan/stats?groupBy={group}"), &key).await.expect(200).json();
            let mut expected = counted_by(&items, &fields);
            if group == "sourceIdentifier" {
                // The default is four digits; shorter identifiers share one row.
                expected = BTreeMap::from([("[\"1239\"]".to_owned(), 6), ("[\"5239\"]".to_owned(), 6), ("[null]".to_owned(), 18)]);
            }
            let rows: BTreeMap<String, i64> = answer["data"].as_array().unwrap().iter().map(|row| {
                let key: Vec<&Value> = fields.iter().map(|field| &row[*field]).collect();
                (json!(key).to_string(), row["postbacks"].as_i64().unwrap())
            }).collect();
            assert_eq!(rows, expected, "{group}");
            assert_eq!(answer["meta"]["totals"]["postbacks"], count, "{group}");
        }
        let two = server.get(&format!("{app}/skan/stats?groupBy=sourceIdentifier&digits=2"), &key).await.expect(200).data();
        let two: Vec<(&str, i64)> = two.as_array().unwrap().iter().map(|row| (row["sourceIdentifier"].as_str().unwrap(), row["postbacks"].as_i64().unwrap())).collect();
        assert_eq!(two, [("39", 24), ("40", 6)]);
        let losses = items.iter().filter(|item| item["didWin"] == false).count();
        let days = server.get(&format!("{app}/skan/stats"), &key).await.expect(200).json();
        assert_eq!(days["meta"]["totals"]["losses"], losses);
        assert!(days["data"].as_array().unwrap().len() > 5);
        let withheld = items.iter().filter(|item| item["fineValue"].is_null() && item["didWin"] == true).count();
        assert_eq!(days["meta"]["totals"]["withheld"], withheld);
        // Postbacks create no events.
        let events = server.get(&format!("{app}/events"), &key).await.expect(200).data();
        assert_eq!(events, json!([]));
    }

    async fn filters_and_pages_lists(engine: Engine) {
        let server = server(engine).await;
        let key = server.full_key().await;
        let app = create_advertised_app(&server, &key, APP_STORE_ID).await;
        let count = post_variants(&server).await;
        post(&server, ADATTRIBUTIONKIT, adattributionkit(PRODUCTION, 1).to_string()).await.expect(200);
        let found = async |query: &str| list(&server, &app, &key, query).await.len();
        assert_eq!(found("protocol=adattributionkit").await, 1);
        assert_eq!(found("adNetwork=OTHER.skadnetwork").await, count / 2);
        assert_eq!(found("sourceIdentifier=39").await, 24);
        assert_eq!(found("sourceIdentifier=5239").await, 6);
        assert_eq!(found("didWin=false").await, 4);
        assert_eq!(found("conversionType=download&sequenceIndex=0&signature=valid").await, count + 1);
        assert_eq!(found("from=2026-01-01&to=2026-01-01&timezone=UTC").await, 4);
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("{app}/skan/postbacks?limit=7{cursor}");
            let page = server.get(&path, &key).await.expect(200).json();
            seen.extend(page["data"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()));
            let Some(next) = page["meta"]["cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
            let other = server.get(&format!("{app}/skan/postbacks?didWin=true{cursor}"), &key).await.expect(422);
            assert_eq!(other.code(), "invalid_cursor");
        }
        assert_eq!(seen.len(), count + 1);
        assert!(seen.is_sorted_by(|newer, older| newer > older));
        assert!(seen[0].starts_with("pbk_"));
        let (mut days, mut cursor) = (Vec::new(), String::new());
        let stats = format!("{app}/skan/stats?groupBy=day,adNetworkId&limit=3");
        let totals = server.get(&stats, &key).await.expect(200).json()["meta"]["totals"].clone();
        assert_eq!(totals["postbacks"], count + 1);
        let mut sum = 0;
        loop {
            let page = server.get(&format!("{stats}{cursor}"), &key).await.expect(200).json();
            assert_eq!(page["meta"]["totals"], totals, "totals cover all pages");
            for row in page["data"].as_array().unwrap() {
                days.push((row["day"].as_str().unwrap().to_owned(), row["adNetworkId"].clone()));
                sum += row["postbacks"].as_u64().unwrap();
            }
            let Some(next) = page["meta"]["cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
            let other = server.get(&format!("{app}/skan/stats?groupBy=day{cursor}"), &key).await.expect(422);
            assert_eq!(other.code(), "invalid_cursor");
        }
        assert_eq!((json!(sum), days.len() > 6), (totals["postbacks"].clone(), true));
        assert!(days.is_sorted_by(|newer, older| newer.0 >= older.0), "newest first");
        for query in ["protocol=x", "signature=x", "counted=1", "sequenceIndex=3", "sourceIdentifier=x", "adNetwork=", "from=x", "limit=501", "nothing=1"] {
            server.get(&format!("{app}/skan/postbacks?{query}"), &key).await.expect(422);
        }
        for query in ["groupBy=x", "groupBy=", "digits=4", "groupBy=sourceIdentifier&digits=5", "from=2020-01-01", "to=2020-01-01&from=2021-01-01", "timezone=x"] {
            server.get(&format!("{app}/skan/stats?{query}"), &key).await.expect(422);
        }
    }

    async fn decodes_a_value_with_the_version_in_force(engine: Engine) {
        let server = server(engine).await;
        let key = server.full_key().await;
        let app = create_advertised_app(&server, &key, APP_STORE_ID).await;
        let decoded = async |number: u32| {
            post(&server, SKADNETWORK, skadnetwork(number).to_string()).await.expect(200);
            list(&server, &app, &key, "").await[0]["decoded"].clone()
        };
        assert_eq!(decoded(1).await, json!({"status": "undecoded", "readings": []}));
        put(&server, &app, &key, &document("Paid", "purchase")).await;
        let paid = json!({"version": 1, "window": 0, "names": ["Paid"], "events": ["purchase"],
                          "revenue": {"min": 50, "max": 100, "currency": "USD"}});
        assert_eq!(decoded(2).await, json!({"status": "decoded", "readings": [paid]}));
        put(&server, &app, &key, &document("Bought", "purchase")).await;
        assert_eq!(decoded(3).await["readings"][0]["names"], json!(["Bought"]), "the newest name");
        server.clock.advance(DAY);
        put(&server, &app, &key, &document("Subscribed", "subscribe")).await;
        server.clock.advance(DAY * 47);
        let ambiguous = decoded(4).await;
        assert_eq!(ambiguous["status"], "ambiguous");
        let names: Vec<&Value> = ambiguous["readings"].as_array().unwrap().iter().map(|one| &one["names"][0]).collect();
        assert_eq!(names, [&json!("Subscribed"), &json!("Bought")]);
        server.clock.advance(DAY * 2);
        assert_eq!(decoded(5).await["readings"][0]["events"], json!(["subscribe"]));
        let withheld = with_fields(skadnetwork(6), &json!({"conversion-value": null}));
        post(&server, SKADNETWORK, withheld.to_string()).await.expect(200);
        assert_eq!(list(&server, &app, &key, "").await[0]["decoded"]["status"], "withheld");
        let versions = server.get(&format!("{app}/skan/versions"), &key).await.expect(200).data();
        assert_eq!((versions[0]["version"].clone(), versions[1]["version"].clone()), (json!(2), json!(1)));
        assert!(versions[0]["ambiguousUntil"].is_string() && versions[1]["ambiguousUntil"].is_null());
    }

    async fn evaluates_a_document(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let app = server.app(&key).await;
        let path = format!("{app}/skan/evaluate");
        let events = json!([
            {"name": "purchase", "afterSeconds": 3_600, "revenue": 30, "currency": "EUR"},
            {"name": "purchase", "afterSeconds": 60, "revenue": "20.00"},
        ]);
        let body = json!({"document": document("Paid", "purchase"), "events": events, "rates": {"EUR": "1.1"}});
        let updates = server.post(&path, &key, body).await.expect(200).data()["updates"].clone();
        assert_eq!(updates, json!([
            {"afterSeconds": 0, "event": null, "window": 0, "fineValue": 0, "coarseValue": "low", "lockWindow": false, "names": ["Install"]},
            {"afterSeconds": 3_600, "event": "purchase", "window": 0, "fineValue": 63, "coarseValue": "high", "lockWindow": false, "names": ["Paid"]},
        ]));
        let empty = server.post(&path, &key, json!({})).await.expect(200).data();
        assert_eq!(empty["updates"].as_array().unwrap().len(), 1, "the first launch always sets a value");
        put(&server, &app, &key, &document("Paid", "purchase")).await;
        let stored = server.post(&path, &key, json!({"events": [{"name": "purchase", "revenue": 50}]})).await.expect(200).data();
        assert_eq!(stored["updates"][1]["fineValue"], 63);
        let faulty = json!({
            "document": {"windows": [{"index": 7}]}, "rates": {"EUR": "x"}, "surprise": 1,
            "events": [{"revenue": "x"}, {"name": "a", "afterSeconds": -1}, {"name": "a", "currency": "XAU", "colour": 1}],
        });
        let answer = server.post(&path, &key, faulty).await.expect(422);
        let fields: Vec<String> = answer.faults().into_iter().map(|(field, _)| field).collect();
        for field in ["document.windows[0].index", "rates", "surprise", "events[0].name", "events[0].revenue", "events[1].afterSeconds", "events[2].currency", "events[2].colour"] {
            assert!(fields.iter().any(|one| one == field), "{field} is missing in {fields:?}");
        }
        assert_eq!(server.get(&format!("{app}/skan"), &key).await.data()["version"], 1, "nothing is stored");
    }

    async fn presets_are_documents_that_can_be_stored(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let app = server.app(&key).await;
        let all = server.get("/api/v1/skan/presets?limit=5", &key).await.expect(200).data();
        server.get("/api/v1/skan/presets?limit=501", &key).await.expect(422);
        let kinds: Vec<&str> = all.as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["revenue_buckets", "event_bits", "funnel"]);
        for preset in all.as_array().unwrap() {
            put(&server, &app, &key, &preset["document"]).await;
        }
        let path = "/api/v1/skan/presets?kind=revenue_buckets&events=subscribe&bounds=0.99,4.99,9.99&currency=EUR";
        let custom = server.get(path, &key).await.expect(200).data()[0]["document"].clone();
        assert_eq!((custom["currency"].as_str(), custom["windows"][0]["values"].as_array().unwrap().len()), (Some("EUR"), 4));
        put(&server, &app, &key, &custom).await;
        for query in ["kind=x", "events=a", "kind=funnel&bounds=1", "kind=revenue_buckets&bounds=5,1", "kind=revenue_buckets&events=a,b", "kind=event_bits&events=a,b,c,d,e,f,g", "kind=funnel&events=install", "currency=XAU"] {
            server.get(&format!("/api/v1/skan/presets?{query}"), &key).await.expect(422);
        }
    }
}
