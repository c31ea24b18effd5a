//! Taps with invented campaign ids do not hide an app's real campaigns from its reports.

use super::clicks::ANDROID;
use super::track::SdkFixture;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tributary_testkit::on_both_engines;

/// Limit on distinct campaigns per day, as documented.
const CAMPAIGNS_PER_DAY: usize = 200;

/// Taps a link with invented campaigns, whose names sort before the real ones.
async fn attack(sdk: &SdkFixture, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let path = format!("/c/spring?campaign_id=0-{number:05}&ad_id={number}");
        let tap = sdk.server.request(Method::GET, &path);
        let tap = tap.header("user-agent", ANDROID);
        sdk.server.send(tap).await.expect(302);
    }
}

/// Returns clicks and installs by campaign.
async fn campaigns(sdk: &SdkFixture) -> BTreeMap<String, (i64, i64)> {
    let path = format!("{}/stats?groupBy=campaign&limit=500", sdk.app);
    let rows = sdk.server.get(&path, &sdk.key).await.expect(200).data();
    let row = |row: &Value| {
        let campaign = row["campaign"].as_str().unwrap_or_default().to_owned();
        let figure = |name: &str| row[name].as_i64().unwrap();
        (campaign, (figure("clicks"), figure("installs")))
    };
    rows.as_array().unwrap().iter().map(row).collect()
}

async fn assert_rebuild_changes_nothing(sdk: &SdkFixture) {
    let store = &sdk.server.store;
    for day in store.rollup_days().await.unwrap() {
        let rebuilt = store.rebuild_rollups(day).await.unwrap();
        assert_eq!(rebuilt.corrected_rows, 0, "{day:?} {rebuilt:?}");
    }
}

on_both_engines! {
    async fn invented_campaigns_do_not_hide_real_ones(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.link("spring", json!({"network": "network_a"})).await;
        sdk.link("summer", json!({"network": "network_a", "campaign": {"id": "z-linked"}})).await;
        attack(&sdk, 0..205).await;
        let token = sdk.tap("/c/spring?campaign_id=z-converting").await;
        sdk.tap("/c/summer").await;
        sdk.tap("/c/spring?campaign_id=z-paid").await;
        sdk.configure("d1", json!({"arClickId": token})).await;
        let found = campaigns(&sdk).await;
        let figures = |name: &str| found.get(name).copied();
        let of_linked = figures("z-linked");
        assert_eq!((figures("z-converting"), of_linked), (Some((1, 1)), Some((1, 0))));
        assert_eq!(figures("z-paid"), None, "its cost is not known yet");

        let cost = json!({"day": "2026-01-01", "network": "network_a", "campaign": "z-paid", "amount": 5});
        let path = format!("{}/costs", sdk.app);
        let costs = Some(json!({"costs": [cost]}));
        sdk.server.call("PUT", &path, &sdk.key, costs).await.expect(200);
        attack(&sdk, 205..2_000).await;
        let found = campaigns(&sdk).await;
        let figures = |name: &str| found.get(name).copied();
        let real = ["z-converting", "z-linked", "z-paid"].map(figures);
        assert_eq!(real, [Some((1, 1)), Some((1, 0)), Some((1, 0))]);
        assert_eq!(found.len(), CAMPAIGNS_PER_DAY + 1);
        assert_eq!(found.values().map(|(clicks, _)| clicks).sum::<i64>(), 2_003);
        let path = format!("{}/overview", sdk.app);
        let overview = sdk.server.get(&path, &sdk.key).await.expect(200).data();
        assert_eq!(overview["topCampaigns"][0]["campaign"], json!("z-converting"));
        let path = format!("{}/export?kind=clicks&format=csv", sdk.app);
        let csv = sdk.server.get(&path, &sdk.key).await.expect(200).text;
        assert!(["z-converting", "z-linked", "z-paid"].iter().all(|name| csv.contains(name)));
        assert_rebuild_changes_nothing(&sdk).await;
        assert_eq!(campaigns(&sdk).await, found);
    }
}
