//! Tampering with the audit log, and entries of earlier versions.

use super::database::Schema;
use super::races::{CALLERS, Nodes};
use std::sync::Arc;
use tributary_store::contract::audit_chain::{earlier_entries_get_a_place, tampering_is_found};
use tributary_store::contract::fixtures::{SharedStore, app, new_link, organization, origin};
use tributary_store::{Links, verify_audit_chain};

#[tokio::test]
async fn tampering_with_sql_is_found() {
    let schema = Schema::create().await;
    let store: SharedStore = Arc::new(schema.open().await);
    let client = schema.client().await;
    tampering_is_found(&store, async |sql| {
        client.batch_execute(sql).await.expect("a statement");
    })
    .await;
}

#[tokio::test]
async fn entries_of_earlier_versions_get_a_place() {
    let schema = Schema::create().await;
    let store: SharedStore = Arc::new(schema.open().await);
    let client = schema.client().await;
    earlier_entries_get_a_place(&store, async |sql| {
        client.batch_execute(sql).await.expect("a statement");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_append_to_one_chain() {
    let nodes = Nodes::start().await;
    let caller = &organization(&nodes.shared()).await;
    let app = app(&nodes.shared(), caller).await;
    let created = nodes
        .all(|node, number| node.create_link(caller, new_link(app.id, number), origin(number)))
        .await;
    assert!(created.iter().all(Result::is_ok));
    let report = verify_audit_chain(&*nodes.nodes[1], caller.organization()).await;
    let report = report.expect("a report").expect("a chain");
    assert_eq!(report.broken, None);
    assert_eq!(
        report.verified,
        2 + u64::try_from(CALLERS).expect("a number")
    );
}
