//! Nodes with different roles on one database.

use crate::command_line::tributary;
use crate::networks::{ServerWithSimulator, wait_until_settled, with_current_time};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tributary_simulator::SimulatedNetwork;
use tributary_testkit::{Engine, TestDatabase};

/// Maximum time for a delivery and for a merge.
const WAIT_MAX: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_divide_the_work_by_role() {
    let mut simulated = ServerWithSimulator::start(Engine::Postgres).await;
    let site = simulated.site(SimulatedNetwork::NetworkA).await;
    let account = simulated
        .connect(&site, SimulatedNetwork::NetworkA, 1)
        .await;
    let node = async |roles: &'static str| {
        let settings = [("TRIBUTARY_ROLES", roles)];
        ServerWithSimulator::serve_with(&simulated.database, &simulated.simulator, &settings).await
    };
    let (accepting, reporting) = (node("accept").await, node("report").await);
    let forwarding = node("forward").await;
    let everything = std::mem::replace(&mut simulated.server, forwarding);
    assert_eq!(everything.terminate().code(), Some(0));

    let visitor = site.through(accepting.base_url());
    let analyst = site.through(reporting.base_url());
    let misdirected = site.through(simulated.server.base_url());
    let purchase = with_current_time(&site.purchase("order-1", "1.00"));
    for wrong in [&analyst, &misdirected] {
        let answer = wrong.send(&purchase).await.expect(503);
        assert_eq!(answer.code(), "unavailable");
        assert!(answer.text.contains("`accept`"), "{answer:?}");
    }
    visitor.send_accepted(&purchase).await;
    for wrong in [&visitor, &misdirected] {
        let answer = wrong.call("GET", "/events", Value::Null).await.expect(503);
        assert!(answer.text.contains("`report`"), "{answer:?}");
    }
    assert_eq!(analyst.log().await.len(), 1);
    let counts = wait_until_settled(&analyst, WAIT_MAX).await;
    assert_eq!(counts, BTreeMap::from([("delivered".to_owned(), 1)]));
    let received = simulated.received(SimulatedNetwork::NetworkA, &account);
    assert_eq!(received.len(), 1);

    let direct = simulated.database.direct_connection().await;
    let begun = Instant::now();
    while !direct
        .rows("select 1 from rollup_increments")
        .await
        .is_empty()
    {
        assert!(begun.elapsed() < WAIT_MAX, "increments are not merged");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[test]
fn sqlite_needs_every_role_in_one_process() {
    let folder = TestDatabase::temp_folder();
    let environment = [("TRIBUTARY_DATA_DIR", folder.path().to_str().unwrap())];
    let output = tributary(&["serve", "--roles", "accept,report"], &environment);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("--roles") && text.contains("SQLite"),
        "{text}"
    );
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}
