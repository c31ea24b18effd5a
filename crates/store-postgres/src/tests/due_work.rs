//! Hints about due work, on several nodes. The contract suite through `PgBouncer` uses hints, too.

use super::database::{Schema, number};
use crate::PostgresStore;
use crate::due_work::{Look, look_at_apps, store_hints};
use crate::tx::Tx;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use tokio_postgres::Client;
use tributary_domain::due_work::{AppWork, WorkKind};
use tributary_domain::forwarding::alert::AlertKind;
use tributary_domain::forwarding::queue_change::QueueChange;
use tributary_domain::integration::{IntegrationChange, Network};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_store::contract::fixtures::{SharedStore, at, origin};
use tributary_store::contract::outbox_fixtures::{
    ForwardingApp, LEASE, OTHER_LEASE, forwarding_app,
};
use tributary_store::{LeaseId, LeaseRequest, Outbox, QueueRef, StoreError};

/// When a queue is looked at next, in seconds after the fixtures' start. Null without a hint.
const NEXT_LOOK: &str = "select greatest(due_at, blocked_until) from due_work
                         where kind = 'network_a'";

/// A node that finds work only by its hints.
async fn open(schema: &Schema) -> Arc<PostgresStore> {
    let store = schema.open().await;
    store.pool.set_distributed(true);
    store.pool.due_work.skip_searches();
    Arc::new(store)
}

/// A node that accepts and one that forwards, with a delivery that is due at second 10.
struct Scene {
    schema: Schema,
    accepting: Arc<PostgresStore>,
    forwarding: Arc<PostgresStore>,
    app: ForwardingApp,
    client: Client,
}

impl Scene {
    async fn start() -> Self {
        let schema = Schema::create().await;
        let accepting = open(&schema).await;
        let forwarding = open(&schema).await;
        let shared: SharedStore = accepting.clone();
        let app = forwarding_app(&shared).await;
        app.attribute_install("phone", 10).await;
        store_hints(&accepting.pool).await.expect("hints");
        let client = schema.client().await;
        Self {
            schema,
            accepting,
            forwarding,
            app,
            client,
        }
    }

    /// Returns the queues that the forwarding node finds.
    async fn due(&self, second: i64) -> Vec<QueueRef> {
        let due = self.forwarding.due_queues(Network::A, at(second), 10);
        due.await.expect("queues")
    }

    /// Returns when the queue is looked at next.
    async fn next_look(&self) -> Option<i64> {
        let row = self.client.query_opt(NEXT_LOOK, &[]).await.expect("a row");
        row.map(|row| row.get(0))
    }

    async fn forget_hints(&self) {
        let sql = "delete from due_work";
        self.client.batch_execute(sql).await.expect("no hints");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_finds_the_work_of_another_by_its_hint() {
    let scene = Scene::start().await;
    assert_eq!(scene.due(9).await, []);
    assert_eq!(scene.due(10).await, [scene.app.queue]);
    assert_eq!(
        scene.due(11).await,
        [scene.app.queue],
        "a look takes nothing"
    );
    // Without the hint, only a search finds the work.
    scene.forget_hints().await;
    assert_eq!(scene.due(12).await, []);
    let searching = scene.schema.open().await;
    searching.pool.set_distributed(true);
    let found = searching.due_queues(Network::A, at(12), 10).await;
    assert_eq!(found.expect("queues"), [scene.app.queue]);
    assert_eq!(
        scene.due(12).await,
        [scene.app.queue],
        "the search leaves a hint"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leased_queue_is_looked_at_when_it_is_released() {
    let scene = Scene::start().await;
    let shared: SharedStore = scene.forwarding.clone();
    let app = scene.app.through(&shared);
    app.lease(LEASE, 12, 100).await.expect("a lease");
    assert_eq!(scene.due(13).await, []);
    assert_eq!(scene.next_look().await, Some(at(100).as_millis()));
    // New work does not lead to a look, because no node could take it.
    scene.app.send_events("phone", &["e1"], "sign_up", 14).await;
    store_hints(&scene.accepting.pool).await.expect("hints");
    assert_eq!(scene.next_look().await, Some(at(100).as_millis()));
    // The lease was renewed, so a look after its first end moves the hint.
    let renewed = scene.forwarding.renew_lease(app.queue, LEASE, at(200));
    assert!(renewed.await.expect("a lease"));
    assert_eq!(scene.due(150).await, []);
    assert_eq!(scene.next_look().await, Some(at(200).as_millis()));
    let released = scene.forwarding.release_queue(app.queue, LEASE, at(160));
    released.await.expect("released");
    assert_eq!(scene.due(160).await, [app.queue]);
    assert_eq!(scene.next_look().await, Some(at(160).as_millis()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_cannot_be_taken_is_not_looked_at_again_and_again() {
    let scene = Scene::start().await;
    let app = &scene.app;
    app.lease(LEASE, 12, 100).await.expect("a lease");
    let mut settlement = app.settlement(Vec::new(), 13);
    settlement.changes.push(QueueChange::Stopped {
        at: at(13),
        code: "190".to_owned(),
        message: None,
    });
    settlement.pause_alert = Some(app.alert(AlertKind::IntegrationPaused, 13));
    assert!(app.settle(LEASE, settlement).await);
    let release = scene.accepting.release_queue(app.queue, LEASE, at(14));
    release.await.expect("released");
    store_hints(&scene.accepting.pool).await.expect("hints");
    assert_eq!(scene.due(15).await, [], "paused");
    assert_eq!(scene.next_look().await, None);
    let (writer, store) = (&app.tenant.writer, &app.tenant.store);
    let resumed = store.resume_integration(
        writer,
        app.queue.app,
        Network::A,
        Precondition::None,
        origin(16),
    );
    resumed.await.expect("resumed");
    store_hints(&scene.accepting.pool).await.expect("hints");
    assert_eq!(scene.due(16).await, [app.queue]);
    // The same for a disabled integration.
    let enable = |enabled| IntegrationChange {
        enabled: Change::Set(enabled),
        ..IntegrationChange::default()
    };
    app.change(Network::A, enable(false), 17).await;
    store_hints(&scene.accepting.pool).await.expect("hints");
    assert_eq!(scene.due(18).await, [], "disabled");
    assert_eq!(scene.next_look().await, None);
    app.change(Network::A, enable(true), 19).await;
    store_hints(&scene.accepting.pool).await.expect("hints");
    assert_eq!(scene.due(19).await, [app.queue]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hint_that_arrives_during_a_look_is_kept() {
    let scene = Scene::start().await;
    let pool = scene.forwarding.pool.clone();
    let kind = WorkKind::Deliveries(Network::A);
    let hints = "select count(*) from due_work where kind = 'network_a'";
    for (arrives, left) in [(true, 1), (false, 0)] {
        let accepting = scene.accepting.clone();
        let look = async move |app: AppId, _| {
            if arrives {
                let added = accepting.run_write(async move |tx| {
                    tx.hint(kind, app, at(15));
                    Ok(())
                });
                added.await?;
                store_hints(&accepting.pool).await?;
            }
            // As if the work was added after this look.
            Ok(Look::<()>::new(Vec::new(), None))
        };
        let looked = look_at_apps(&pool, kind, at(20), 10, look).await;
        assert_eq!(looked.expect("a look").len(), 0);
        assert_eq!(number(&scene.client, hints).await, left, "{arrives}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_app_that_fails_does_not_stop_the_others() {
    let scene = Scene::start().await;
    let shared: SharedStore = scene.accepting.clone();
    let other = forwarding_app(&shared).await;
    other.attribute_install("phone", 11).await;
    store_hints(&scene.accepting.pool).await.expect("hints");
    let (pool, kind) = (&scene.forwarding.pool, WorkKind::Deliveries(Network::A));
    let failing = scene.app.queue.app;
    let look = async move |app: AppId, _| {
        if app == failing {
            return Err(StoreError::unavailable("look", "the worker is down"));
        }
        let left = AppWork {
            earliest_due: Some(at(11)),
            ..AppWork::default()
        };
        let taken = vec![app];
        Ok(Look { taken, left })
    };
    let taken = look_at_apps(pool, kind, at(20), 10, look).await;
    assert_eq!(taken.expect("apps"), [other.queue.app]);
    // The failed app is left alone for a while.
    assert_eq!(scene.due(21).await, [other.queue]);
    assert_eq!(scene.due(60).await, [other.queue, scene.app.queue]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_least_recently_served_queue_is_first() {
    let scene = Scene::start().await;
    let shared: SharedStore = scene.accepting.clone();
    let other = forwarding_app(&shared).await;
    other.attribute_install("phone", 11).await;
    store_hints(&scene.accepting.pool).await.expect("hints");
    assert_eq!(scene.due(12).await, [scene.app.queue, other.queue]);
    for (served, lease, first) in [
        (&scene.app, LEASE, &other),
        (&other, OTHER_LEASE, &scene.app),
    ] {
        let second = if lease == LEASE { 13 } else { 15 };
        served.lease(lease, second, 100).await.expect("a lease");
        let released = scene
            .accepting
            .release_queue(served.queue, lease, at(second + 1));
        released.await.expect("released");
        store_hints(&scene.accepting.pool).await.expect("hints");
        assert_eq!(scene.due(20).await, [first.queue, served.queue]);
    }
}

/// Requests a lease of a queue that is shared as long as any delivery is due.
fn shared_lease(id: LeaseId, from: i64, until: i64) -> LeaseRequest {
    LeaseRequest {
        id,
        now: at(from),
        until: at(until),
        shared_from: 1,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shared_queues_do_not_keep_others_from_being_found() {
    let scene = Scene::start().await;
    let shared: SharedStore = scene.accepting.clone();
    let second = forwarding_app(&shared).await;
    second.attribute_install("phone", 10).await;
    let free = forwarding_app(&shared).await;
    free.attribute_install("phone", 13).await;
    for app in [&scene.app, &second] {
        let leased = app.lease_as(shared_lease(LEASE, 12, 100)).await;
        assert!(leased.is_some(), "it is leased and offered");
    }
    store_hints(&scene.accepting.pool).await.expect("hints");
    let find = async |second| {
        let due = scene.forwarding.due_queues(Network::A, at(second), 2);
        due.await.expect("queues")
    };
    let leased = find(20).await;
    assert!(!leased.contains(&free.queue), "the others were due before");
    assert!(find(21).await.contains(&free.queue), "now they come later");
    assert_eq!(scene.due(21).await.len(), 3, "nodes find them at once");
    // A renewed lease of a part changes nothing.
    let asked = scene.app.lease_as(shared_lease(OTHER_LEASE, 22, 100)).await;
    assert!(asked.is_none(), "it is asked for");
    let release = scene
        .accepting
        .release_queue(scene.app.queue, LEASE, at(23));
    release.await.expect("released");
    let part = scene.app.lease_as(shared_lease(OTHER_LEASE, 24, 100)).await;
    assert!(part.is_some());
    let renewed = scene
        .accepting
        .renew_lease(scene.app.queue, OTHER_LEASE, at(120));
    assert!(renewed.await.expect("a lease"));
    store_hints(&scene.accepting.pool).await.expect("hints");
    assert_eq!(find(25).await[0], free.queue);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_withdraws_an_offer_does_not_block_the_released_queue() {
    let scene = Scene::start().await;
    let leased = scene.app.lease_as(shared_lease(LEASE, 12, 100)).await;
    assert!(leased.is_some(), "it is leased and offered");
    let shared: SharedStore = scene.forwarding.clone();
    let through = scene.app.through(&shared);
    let refused = through.lease_as(LeaseRequest {
        shared_from: 1_000,
        ..shared_lease(OTHER_LEASE, 13, 100)
    });
    assert!(refused.await.is_none(), "the backlog is small");
    let queue = scene.app.queue;
    let release = scene.accepting.release_queue(queue, LEASE, at(14));
    release.await.expect("released");
    store_hints(&scene.accepting.pool).await.expect("hints");
    // The other node stores its hints later.
    store_hints(&scene.forwarding.pool).await.expect("hints");
    assert_eq!(scene.due(15).await, [queue]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_does_not_wait_for_the_commit_leaves_its_hints() {
    let scene = Scene::start().await;
    scene.forget_hints().await;
    let app = scene.app.queue.app;
    let has_worked = AtomicBool::new(false);
    {
        let added = scene.accepting.run_write(async |tx: &Tx| {
            tx.hint(WorkKind::Deliveries(Network::A), app, at(15));
            has_worked.store(true, Ordering::Relaxed);
            Ok(())
        });
        let mut added = pin!(added);
        poll_fn(|context| {
            let polled = added.as_mut().poll(context).map(drop);
            // The same poll has sent the commit.
            if has_worked.load(Ordering::Relaxed) {
                return Poll::Ready(());
            }
            polled
        })
        .await;
    }
    store_hints(&scene.accepting.pool).await.expect("hints");
    assert_eq!(scene.next_look().await, Some(at(15).as_millis()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopping_node_stores_its_hints() {
    use tributary_store::Instance;
    let scene = Scene::start().await;
    scene.forget_hints().await;
    scene.app.send_events("phone", &["e1"], "sign_up", 14).await;
    scene.accepting.close().await;
    assert_eq!(scene.due(15).await, [scene.app.queue]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_stores_hints_by_itself() {
    let scene = Scene::start().await;
    scene.forget_hints().await;
    scene.app.send_events("phone", &["e1"], "sign_up", 14).await;
    while scene.next_look().await.is_none() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_with_one_server_has_no_hints() {
    let schema = Schema::create().await;
    let store = Arc::new(schema.open().await);
    let shared: SharedStore = store.clone();
    let app = forwarding_app(&shared).await;
    app.attribute_install("phone", 10).await;
    store_hints(&store.pool).await.expect("no hints");
    let client = schema.client().await;
    assert_eq!(number(&client, "select count(*) from due_work").await, 0);
    let due = store.due_queues(Network::A, at(10), 10).await;
    assert_eq!(due.expect("queues"), [app.queue]);
}
