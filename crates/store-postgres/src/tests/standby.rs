//! Reports from a standby: which server answers, and what happens when one of them fails.

use super::database::{number, options};
use crate::server_pair::ServerPair;
use crate::tx::Tx;
use crate::{Failure, PostgresOptions, PostgresStore, StandbyOptions};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::{AnalyticsRead, Authorized, Permission, authorize};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_store::contract::fixtures::{
    CLIENT, SharedStore, at, new_key, organization, origin, unique,
};
use tributary_store::contract::reports::a_report_contains_everything_answered_before_it;
use tributary_store::{Instance, Reports, StandbyReport, StoreError, Tenants};

/// Lag beyond which the primary serves reports.
const LAG_MAX: Duration = Duration::from_secs(2);
/// How long a test waits for a state that is reached within milliseconds.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Opens a store that uses both servers.
async fn open(pair: &ServerPair, lag_max: Duration) -> PostgresStore {
    let standby_url = pair.standby.url();
    let standby = StandbyOptions {
        url: &standby_url,
        lag_max,
    };
    // A frozen server must not delay the test.
    let options = PostgresOptions {
        connect_timeout: Duration::from_secs(2),
        statement_timeout: Duration::from_secs(5),
        report_timeout: Duration::from_secs(5),
        ..options()
    };
    let opened = PostgresStore::connect_with(&pair.primary.url(), options, Some(standby)).await;
    opened.expect("a store")
}

fn caller(organization: OrganizationId) -> Authorized<AnalyticsRead> {
    let key = ApiKey {
        permission: Permission::ReadOnly,
        ..new_key(organization).key
    };
    authorize(&key, CLIENT).expect("a key may read")
}

async fn is_standby(tx: &Tx) -> Result<bool, Failure> {
    let row = tx.query_one("select pg_is_in_recovery()", &[]).await?;
    Ok(row.try_get(0)?)
}

/// Returns whether the standby serves reports of this caller.
async fn uses_standby(store: &PostgresStore, caller: &Authorized<AnalyticsRead>) -> bool {
    let asked = store.read_for(caller, "stats", async |tx| is_standby(tx).await);
    asked.await.expect("a report")
}

/// Waits until the standby serves reports of this caller, or no longer does.
async fn wait_for_server(store: &PostgresStore, caller: &Authorized<AnalyticsRead>, standby: bool) {
    let begun = Instant::now();
    while uses_standby(store, caller).await != standby {
        assert!(
            begun.elapsed() < WAIT_MAX,
            "the other server serves reports"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns the number of organizations in a report of this caller.
async fn count(store: &PostgresStore, caller: &Authorized<AnalyticsRead>) -> i64 {
    let counted = store.read_for(caller, "stats", async |tx| {
        let row = tx
            .query_one("select count(*) from organizations", &[])
            .await?;
        Ok(row.try_get(0)?)
    });
    counted.await.expect("a report")
}

struct Scene {
    pair: ServerPair,
    store: Arc<PostgresStore>,
    shared: SharedStore,
    /// Two callers of one organization.
    one: Authorized<AnalyticsRead>,
    other: Authorized<AnalyticsRead>,
}

impl Scene {
    async fn new() -> Self {
        let pair = tokio::task::spawn_blocking(ServerPair::start)
            .await
            .expect("two servers");
        let store = Arc::new(open(&pair, LAG_MAX).await);
        let shared: SharedStore = store.clone();
        let id = organization(&shared).await.organization();
        let scene = Self {
            pair,
            store,
            shared,
            one: caller(id),
            other: caller(id),
        };
        wait_for_server(&scene.store, &scene.one, true).await;
        scene
    }

    async fn on_standby(&self, sql: &str) {
        let client = self.pair.standby.client().await;
        client.batch_execute(sql).await.expect(sql);
    }
}

/// One test for all cases, because starting two servers takes seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_serves_reports() {
    let scene = Scene::new().await;
    a_refusal_comes_from_the_primary(&scene).await;
    a_report_is_complete_with_a_bound_of_zero(&scene).await;
    a_caller_sees_its_changes_and_others_see_them_within_the_bound(&scene).await;
    a_conflict_with_replay_moves_the_report_to_the_primary(&scene).await;
    reports_go_on_while_the_primary_is_frozen(&scene).await;
    reports_go_on_while_the_standby_is_stopped(&scene).await;
    another_database_is_not_used(&scene).await;
    scene.store.close().await;
}

async fn a_refusal_comes_from_the_primary(scene: &Scene) {
    let app = AppId::new(at(0), unique());
    let report = scene.store.link_names(&scene.one, app, Vec::new()).await;
    assert!(
        matches!(report, Err(StoreError::Refused(Refusal::AppNotFound))),
        "{report:?}"
    );
}

async fn a_report_is_complete_with_a_bound_of_zero(scene: &Scene) {
    let store: SharedStore = Arc::new(open(&scene.pair, Duration::ZERO).await);
    a_report_contains_everything_answered_before_it(&store).await;
    store.close().await;
}

async fn a_caller_sees_its_changes_and_others_see_them_within_the_bound(scene: &Scene) {
    let Scene {
        store, one, other, ..
    } = scene;
    let before = count(store, one).await;
    scene.on_standby("select pg_wal_replay_pause()").await;
    organization(&scene.shared).await;
    store.note_change(one.actor());
    assert_eq!(
        count(store, one).await,
        before + 1,
        "the caller sees its change"
    );
    assert!(
        uses_standby(store, other).await,
        "a change of another caller"
    );
    assert_eq!(count(store, other).await, before);
    wait_for_server(store, other, false).await;
    assert_eq!(
        count(store, other).await,
        before + 1,
        "the lag is above the bound"
    );
    let report = store.report().await.expect("a report");
    let Some(StandbyReport::Usable { lag, lag_max }) = report.standby else {
        panic!("{report:?}");
    };
    assert!(lag > lag_max, "{lag:?}");
    scene.on_standby("select pg_wal_replay_resume()").await;
    for caller in [one, other] {
        wait_for_server(store, caller, true).await;
        assert_eq!(count(store, caller).await, before + 1);
    }
}

async fn a_conflict_with_replay_moves_the_report_to_the_primary(scene: &Scene) {
    let store = scene.store.clone();
    let caller = scene.one.clone();
    let report = tokio::spawn(async move {
        let report = store.read_for(&caller, "stats", async |tx| {
            tx.query("select count(*) from instance", &[]).await?;
            let is_standby = is_standby(tx).await?;
            if is_standby {
                tx.query("select pg_sleep(60)::text", &[]).await?;
            }
            Ok(is_standby)
        });
        report.await
    });
    let standby = scene.pair.standby.client().await;
    let sleeping = "select count(*) from pg_stat_activity where query like '%pg_sleep(60)%' and pid <> pg_backend_pid()";
    while number(&standby, sleeping).await == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let primary = scene.pair.primary.client().await;
    let lock = "begin; lock table instance in access exclusive mode; commit";
    primary.batch_execute(lock).await.expect("a lock");
    assert!(
        !report.await.expect("no panic").expect("a report"),
        "the standby answered"
    );
    wait_for_server(&scene.store, &scene.one, true).await;
}

async fn reports_go_on_while_the_primary_is_frozen(scene: &Scene) {
    let Scene { store, one, .. } = scene;
    let key = new_key(one.organization());
    let digest = key.digest;
    let created = store.create_key(key, origin(1)).await;
    created.expect("a key");
    let expected = count(store, one).await;
    scene.pair.primary.freeze();
    let begun = Instant::now();
    assert_eq!(count(store, one).await, expected);
    assert!(uses_standby(store, one).await);
    let found = store.key_by_digest(digest).await.expect("an answer");
    assert!(found.is_some(), "callers are authenticated");
    assert!(
        store.commit_probe(at(1)).await.is_err(),
        "nothing is written"
    );
    scene.pair.primary.thaw();
    assert!(begun.elapsed() < WAIT_MAX);
    let begun = Instant::now();
    while store.commit_probe(at(1)).await.is_err() {
        assert!(begun.elapsed() < WAIT_MAX, "the primary is back");
    }
    wait_for_server(store, one, true).await;
}

async fn reports_go_on_while_the_standby_is_stopped(scene: &Scene) {
    let Scene { store, one, .. } = scene;
    let expected = count(store, one).await;
    scene.pair.standby.freeze();
    assert_eq!(count(store, one).await, expected, "the standby is frozen");
    assert!(!uses_standby(store, one).await);
    scene.pair.standby.thaw();
    scene.pair.standby.stop();
    assert_eq!(count(store, one).await, expected, "the standby is stopped");
    let report = store.report().await.expect("a report");
    assert!(
        matches!(report.standby, Some(StandbyReport::Unusable(_))),
        "{report:?}"
    );
    scene.pair.standby.start();
    wait_for_server(store, one, true).await;
}

async fn another_database_is_not_used(scene: &Scene) {
    let primary = scene.pair.primary.url();
    let elsewhere = scene.pair.standby.url().replace("/postgres", "/template1");
    for url in [&primary, &elsewhere] {
        let standby = StandbyOptions {
            url,
            lag_max: LAG_MAX,
        };
        let store = PostgresStore::connect_with(&primary, options(), Some(standby)).await;
        let store = store.expect("a store");
        let report = store.report().await.expect("a report");
        let Some(StandbyReport::Unusable(problem)) = report.standby else {
            panic!("{report:?}");
        };
        assert!(problem.contains("database_read_url"), "{problem}");
        assert!(!uses_standby(&store, &scene.one).await);
    }
}
