//! A rolling upgrade: an older node serves requests while a newer one migrates the database and takes
//! over.

use crate::networks::with_current_time;
use crate::website::Website;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tributary_testkit::{Engine, ServerProcess, TestDatabase};

/// Concurrent clients.
const CLIENTS: usize = 4;
/// Events that are accepted in each phase of the upgrade.
const EVENTS_PER_PHASE: usize = 200;
/// Maximum time for a phase.
const PHASE_MAX: Duration = Duration::from_mins(2);

/// Returns the binary of an older version, which `./test --long` builds. Without it, both nodes have
/// this version.
#[expect(clippy::disallowed_methods, reason = "a long run sets the binary")]
fn older_binary() -> Option<PathBuf> {
    std::env::var_os("TRIBUTARY_OLDER_BINARY").map(PathBuf::from)
}

/// Clients that send events to some nodes, one after the other. Every event must be accepted.
#[derive(Clone)]
struct Load {
    site: Website,
    nodes: Arc<Mutex<Vec<String>>>,
    accepted: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

impl Load {
    async fn run(self, client: usize) {
        let mut number = 0;
        while !self.is_over.load(Ordering::SeqCst) {
            let node = {
                let nodes = self.nodes.lock().unwrap();
                nodes[number % nodes.len()].clone()
            };
            let event = self
                .site
                .purchase(&format!("order-{client}-{number}"), "1.00");
            let site = self.site.through(&node);
            site.send_accepted(&with_current_time(&event)).await;
            self.accepted.fetch_add(1, Ordering::SeqCst);
            number += 1;
        }
    }

    /// Directs the load to these nodes and waits until they have accepted some more events.
    async fn direct_to(&self, nodes: &[&ServerProcess]) {
        let urls = nodes.iter().map(|node| node.base_url().to_owned());
        *self.nodes.lock().unwrap() = urls.collect();
        let accepted = self.accepted.load(Ordering::SeqCst);
        let begun = Instant::now();
        while self.accepted.load(Ordering::SeqCst) < accepted + EVENTS_PER_PHASE {
            assert!(begun.elapsed() < PHASE_MAX, "too few events were accepted");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_are_replaced_one_by_one_without_a_failed_request() {
    let (database, older) = (TestDatabase::new(Engine::Postgres).await, older_binary());
    let old = ServerProcess::start_version(&database, older.as_deref()).await;
    // This version's binary would migrate the database.
    let create_key = ["admin", "key", "create", "--permission", "full"];
    let key = ServerProcess::run_version(&database, older.as_deref(), &create_key).unwrap();
    let load = Load {
        site: Website::open_at(old.base_url(), &key).await,
        nodes: Arc::new(Mutex::new(vec![old.base_url().to_owned()])),
        accepted: Arc::default(),
        is_over: Arc::default(),
    };
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| tokio::spawn(load.clone().run(client)))
        .collect();
    load.direct_to(&[&old]).await;
    let new = ServerProcess::start_version(&database, None).await;
    load.direct_to(&[&old, &new]).await;
    load.direct_to(&[&new]).await;
    assert_eq!(old.terminate().code(), Some(0));
    load.direct_to(&[&new]).await;
    load.is_over.store(true, Ordering::SeqCst);
    for client in clients {
        client.await.expect("every event was accepted");
    }
    let accepted = load.accepted.load(Ordering::SeqCst);
    let logged = load.site.through(new.base_url()).log().await.len();
    println!("{accepted} events were accepted during the upgrade");
    assert_eq!(logged, accepted);
}
