//! Batches of clicks: each click is stored once, and a bad click fails alone.

use super::database::{Schema, number};
use super::races::{CALLERS, Nodes};
use std::sync::Arc;
use tributary_domain::click::Click;
use tributary_domain::vocabulary::id::LinkId;
use tributary_store::contract::fixtures::{SharedStore, join_all};
use tributary_store::contract::sdk_fixtures::tenant;
use tributary_store::{Clicks, Instance, StoreError};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_count_each_click_once_and_group_their_commits() {
    let nodes = Nodes::start().await;
    let tenant = tenant(&nodes.shared()).await;
    let clicks: Vec<Click> = (0..200).map(|_| tenant.click(10)).collect();
    // The other node records the same clicks in reverse order.
    let node = |number: usize| &nodes.nodes[number];
    let there = clicks
        .iter()
        .map(|click| node(0).record_click(click.clone()));
    let back = clicks
        .iter()
        .rev()
        .map(|click| node(1).record_click(click.clone()));
    for outcome in join_all(there.chain(back).collect()).await {
        outcome.expect("click is recorded");
    }
    assert_eq!(tenant.figures_of("network_a").await.clicks, 200);
    let client = nodes.schema.client().await;
    let stored = number(&client, "select count(*) from clicks").await;
    assert_eq!(stored, 200);
    let commits = number(&client, "select count(distinct xmin::text) from clicks").await;
    assert!(commits <= 20, "{commits} commits for {stored} clicks");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_click_fails_alone() {
    let schema = Schema::create().await;
    let store: SharedStore = Arc::new(schema.open().await);
    let tenant = tenant(&store).await;
    let clicks: Vec<Click> = (0..40)
        .map(|number| {
            let mut click = tenant.click(10);
            if number % 20 == 7 {
                click.link = LinkId::from_bytes([7; 16]);
            }
            click
        })
        .collect();
    let outcomes = join_all(
        clicks
            .into_iter()
            .map(|click| store.record_click(click))
            .collect(),
    );
    for (number, outcome) in (0..).zip(outcomes.await) {
        match outcome {
            Ok(()) => assert_ne!(number % 20, 7),
            Err(StoreError::Unavailable { source, .. }) => {
                assert_eq!(number % 20, 7);
                assert!(source.to_string().contains("clicks_link_fkey"), "{source}");
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(tenant.figures_of("network_a").await.clicks, 38);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_writes_the_queued_clicks() {
    let schema = Schema::create().await;
    let store = Arc::new(schema.open().await);
    let shared: SharedStore = store.clone();
    let tenant = tenant(&shared).await;
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let (store, click) = (store.clone(), tenant.click(10));
            tokio::spawn(async move { store.record_click(click).await })
        })
        .collect();
    tokio::task::yield_now().await;
    store.close().await;
    let mut accepted = 0;
    for task in tasks {
        accepted += i64::from(task.await.expect("no panic").is_ok());
    }
    assert!(store.record_click(tenant.click(11)).await.is_err());
    let client = schema.client().await;
    let stored = number(&client, "select count(*) from clicks").await;
    assert_eq!(stored, accepted);
}

/// Three ids of 500 incompressible characters each, too long for any index.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_long_campaign_ids_separately() {
    let nodes = Nodes::start().await;
    let tenant = &tenant(&nodes.shared()).await;
    let outcomes = nodes
        .all(|node, number| {
            let mut click = tenant.click(10);
            let campaign = &mut click.captured.campaign;
            campaign.id = Some(noise(1));
            campaign.adset_id = Some(noise(2));
            // Two callers at a time use the same ad id.
            campaign.ad_id = Some(noise(3 + number / 2));
            async move { node.record_click(click).await }
        })
        .await;
    assert!(outcomes.iter().all(Result::is_ok));
    assert_eq!(tenant.figures_of("network_a").await.clicks, CALLERS);
    nodes.schema.merge_increments().await;
    let client = nodes.schema.client().await;
    let keys = number(
        &client,
        "select count(*) from rollup_credits where clicks = 2 and grain = 15",
    )
    .await;
    assert_eq!(keys, CALLERS / 2);
}

fn noise(seed: i64) -> String {
    let mut state = u32::try_from(seed).expect("small");
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from_u32(0x4e00 + (state >> 16) % 0x5000).expect("valid character")
    };
    (0..500).map(|_| next()).collect()
}
