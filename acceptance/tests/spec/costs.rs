//! Ad costs from files: exports of the networks' ad managers, and amounts as people write them.

use serde_json::{Value, json};
use tributary_testkit::{TestServer, on_both_engines};

const GOOGLE_ADS: &str = "Campaign report\n\"November 1, 2026 - November 2, 2026\"\n\
    Day,Campaign,Campaign ID,Currency code,Cost\n\
    2026-11-01,Brand,777,USD,\"1,212.50\"\n2026-11-01,Brand,777,USD,0.25\n\
    2026-11-02,Brand,777,USD,\"2,000\"\nTotal: Account,,,,\"3,212.75\"\n";

async fn put(server: &TestServer, path: &str, key: &str, csv: Vec<u8>) -> (u16, Value) {
    let request = server.request(reqwest::Method::PUT, path).bearer_auth(key);
    let request = request.header("content-type", "text/csv").body(csv);
    let response = server.send(request).await;
    (response.status.as_u16(), response.json())
}

fn fields(refused: &Value) -> Vec<&str> {
    let details = refused["error"]["details"].as_array().unwrap().iter();
    details
        .map(|fault| fault["field"].as_str().unwrap())
        .collect()
}

on_both_engines! {
    async fn exports_of_the_networks_are_read_by_their_columns(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let costs = format!("{}/costs", server.app(&key).await);
        let utf_16 = format!("\u{feff}{GOOGLE_ADS}").encode_utf16().flat_map(u16::to_le_bytes).collect();
        for file in [GOOGLE_ADS.into(), utf_16] {
            let (status, stored) = put(&server, &costs, &key, file).await;
            assert_eq!((status, &stored["data"]), (200, &json!({"stored": 2, "skipped": 1})));
        }
        let listed = server.get(&costs, &key).await.expect(200).data();
        let row = |index: usize| (listed[index]["campaign"].clone(), listed[index]["network"].clone(), listed[index]["amount"].to_string());
        assert_eq!(row(0), (json!("777"), json!("network_b"), "2000".to_owned()));
        assert_eq!(row(1), (json!("777"), json!("network_b"), "1212.75".to_owned()));
    }

    async fn an_export_that_leaves_something_open_names_it(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let costs = format!("{}/costs", server.app(&key).await);
        let file = "Datum;Kampagne;Ausgaben\n2026-11-01;Brand;1.212,50\n";
        let (status, refused) = put(&server, &format!("{costs}?dayColumn=Datum&amountColumn=Ausgaben"), &key, file.into()).await;
        assert_eq!((status, fields(&refused)), (422, vec!["network", "currency"]));
        let chosen = "?dayColumn=Datum&amountColumn=Ausgaben&campaignColumn=Kampagne&network=other&currency=USD";
        let (status, _) = put(&server, &format!("{costs}{chosen}"), &key, file.into()).await;
        assert_eq!(status, 200);
        let ambiguous = "day,network,amount\n2026-11-01,network_a,\"1,212\"\n";
        let (status, refused) = put(&server, &costs, &key, ambiguous.into()).await;
        assert_eq!((status, fields(&refused)), (422, vec!["costs[0].amount"]));
        let body = Some(json!({"costs": [{"day": "2026-11-01", "network": "other", "amount": 1}]}));
        let refused = server.call("PUT", &format!("{costs}?currency=USD"), &key, body).await.expect(422);
        assert_eq!(fields(&refused.json()), ["currency"]);
        let listed = server.get(&costs, &key).await.expect(200).data();
        assert_eq!(listed.as_array().unwrap().len(), 1, "refused files store nothing");
    }
}
