//! Servers that do not accept writes: standbys, and fenced primaries.

use super::database::{number, options, with_setting};
use crate::server_pair::ServerPair;
use crate::{PostgresOpenError, PostgresStore};
use std::time::{Duration, Instant};
use tributary_store::contract::fixtures::at;
use tributary_store::{Instance, StoreError, StoreResult};

/// How long a test waits for what takes milliseconds.
const WAIT_MAX: Duration = Duration::from_secs(30);

#[track_caller]
fn expect_unavailable(outcome: StoreResult<()>, text: &str) {
    let Err(StoreError::Unavailable { source, .. }) = outcome else {
        panic!("expected unavailable, got {outcome:?}");
    };
    assert!(source.to_string().contains(text), "{source}");
}

async fn open(url: &str) -> PostgresStore {
    let store = PostgresStore::connect(url, options()).await;
    store.expect("a store")
}

/// Opens several connections, which then wait in the pool.
async fn fill_pool(store: &PostgresStore) {
    let probes = (1..=4).map(|second| store.commit_probe(at(second)));
    for probe in futures_util::future::join_all(probes).await {
        probe.expect("a commit");
    }
}

/// One test for all cases, because starting two servers takes seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_accept_writes_is_not_used() {
    let pair = tokio::task::spawn_blocking(ServerPair::start);
    let mut pair = pair.await.expect("two servers");
    let single = with_setting(&pair.primary.url(), "application_name=single");
    let single = open(&single).await;
    let port = |url: &str| url.rsplit(':').next().expect("a port").to_owned();
    let second = port(&pair.standby.url());
    let both = pair
        .primary
        .url()
        .replace("/postgres", &format!(",127.0.0.1:{second}"));
    let both = open(&both).await;
    a_standby_is_rejected(&pair).await;
    a_fenced_primary_gets_no_writes(&pair, &single).await;
    fill_pool(&both).await;
    pair.primary
        .set("default_transaction_read_only", "on")
        .await;
    pair.fail_over().await;
    // No request fails: the connections to the fenced server are replaced.
    fill_pool(&both).await;
    let client = pair.primary.client().await;
    let probes = "select count(*) from instance where name = 'probed_at'";
    assert_eq!(number(&client, probes).await, 1, "the new primary has it");
    both.close().await;
}

async fn a_standby_is_rejected(pair: &ServerPair) {
    let Err(error) = PostgresStore::connect(&pair.standby.url(), options()).await else {
        panic!("a standby is used as the primary");
    };
    assert!(
        matches!(error, PostgresOpenError::Unreachable(_)),
        "{error:?}"
    );
    assert!(error.to_string().contains("is a standby"), "{error}");
    assert!(error.is_transient(), "it may be promoted");
}

/// `begin read write` would override the setting.
async fn a_fenced_primary_gets_no_writes(pair: &ServerPair, store: &PostgresStore) {
    fill_pool(store).await;
    pair.primary
        .set("default_transaction_read_only", "on")
        .await;
    let client = pair.primary.client().await;
    let sessions = "select count(*) from pg_stat_activity where application_name = 'single'
                    and backend_type = 'client backend' and state = 'idle'";
    for second in 5..8 {
        let probe = store.commit_probe(at(second)).await;
        expect_unavailable(probe, "does not allow writes");
    }
    let begun = Instant::now();
    while number(&client, sessions).await > 0 {
        assert!(begun.elapsed() < WAIT_MAX, "connections are kept");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    client
        .batch_execute("set default_transaction_read_only = off")
        .await
        .expect("a session may override the setting");
    pair.primary
        .set("default_transaction_read_only", "off")
        .await;
    store.commit_probe(at(9)).await.expect("the fence is gone");
}
