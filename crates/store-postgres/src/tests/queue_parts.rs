//! Queues that several nodes share, while these nodes run at once, and beside a node of the previous
//! version.

use super::races::Nodes;
use crate::rows::uuid;
use std::collections::BTreeSet;
use tokio_postgres::Client;
use tributary_domain::forwarding::queue_change::QueueChange;
use tributary_domain::forwarding::sharing::{PARTS, QueuePart, QueueShare};
use tributary_store::contract::fixtures::at;
use tributary_store::contract::outbox_fixtures::{ForwardingApp, forwarding_app};
use tributary_store::{LeaseId, LeaseRequest, Outbox, QueueRef};

/// Deliveries in the queue.
const BACKLOG: i64 = 20;

const fn lease(number: u8) -> LeaseId {
    LeaseId([number; 16])
}

/// Requests a lease. The queue is shared as long as any delivery is due.
fn request(number: u8, from: i64, until: i64) -> LeaseRequest {
    LeaseRequest {
        id: lease(number),
        now: at(from),
        until: at(until),
        shared_from: 1,
    }
}

/// Creates a queue that a second node has asked to share, and that is not leased.
async fn shared_queue(nodes: &Nodes) -> ForwardingApp {
    let one = forwarding_app(&nodes.shared()).await;
    one.attribute_install("phone", 10).await;
    let ids: Vec<String> = (1..BACKLOG).map(|number| format!("s{number}")).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    one.send_events("phone", &ids, "sign_up", 11).await;
    assert!(one.lease_as(request(101, 12, 100)).await.is_some());
    assert!(one.lease_as(request(102, 13, 100)).await.is_none());
    let released = nodes.nodes[0].release_queue(one.queue, lease(101), at(14));
    released.await.expect("the call succeeds");
    one
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_nodes_lease_different_parts_and_settle_together() {
    let nodes = Nodes::start().await;
    let one = &shared_queue(&nodes).await;
    let leased = nodes
        .all(|node, number| {
            let number = u8::try_from(number).expect("small") + 1;
            async move {
                let leased = node.lease_queue(one.queue, request(number, 20, 60)).await?;
                Ok(leased.map(|leased| (number, leased.share)))
            }
        })
        .await;
    let leased: Vec<(u8, QueueShare)> = leased.into_iter().flatten().flatten().collect();
    let part = |(_, share): &(u8, QueueShare)| match share {
        QueueShare::Part(part) => *part,
        QueueShare::Whole => panic!("the queue is shared"),
    };
    let parts: BTreeSet<QueuePart> = leased.iter().map(part).collect();
    assert_eq!((leased.len(), parts.len()), (4, usize::from(PARTS)));

    // Every holder stores a failure. No holder overwrites the count of another one.
    let settled = nodes
        .all(|node, number| {
            let index = usize::try_from(number).expect("small") % leased.len();
            let mut settlement = one.settlement(Vec::new(), 21);
            settlement.changes.push(QueueChange::Failed {
                at: at(21),
                wait: None,
                random: 0,
            });
            let holder = lease(leased[index].0);
            async move { node.settle_deliveries(one.queue, holder, settlement).await }
        })
        .await;
    let failures = settled.into_iter().map(|settled| {
        let settled = settled.expect("no refusal").expect("the lease is valid");
        settled.state.failures
    });
    let failures: BTreeSet<u32> = failures.collect();
    assert_eq!(failures, (1..=12).collect(), "each failure counts once");
}

/// Leases a queue as the previous version does.
async fn lease_as_before(client: &Client, queue: QueueRef, number: u8, from: i64) -> bool {
    let leased = client
        .query(
            "insert into queues (app_id, network, lease_id, leased_until) values ($1, $2, $3, $4)
             on conflict (app_id, network) do update
             set lease_id = excluded.lease_id, leased_until = excluded.leased_until
             where queues.leased_until <= $5 and queues.paused_at is null
             returning network",
            &[
                &uuid(queue.app.as_bytes()),
                &queue.network.as_str(),
                &uuid(&lease(number).0),
                &at(from + 50).as_millis(),
                &at(from).as_millis(),
            ],
        )
        .await;
    !leased.expect("the statement succeeds").is_empty()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_the_previous_version_waits_for_all_parts() {
    let nodes = Nodes::start().await;
    let one = shared_queue(&nodes).await;
    let (store, queue) = (&nodes.nodes[0], one.queue);
    let client = nodes.schema.client().await;
    assert!(one.lease_as(request(1, 20, 60)).await.is_some());
    assert!(one.lease_as(request(2, 20, 80)).await.is_some());
    assert!(!lease_as_before(&client, queue, 50, 59).await);
    let released = store.release_queue(queue, lease(2), at(59));
    released.await.expect("the call succeeds");
    assert!(
        !lease_as_before(&client, queue, 50, 59).await,
        "one is left"
    );
    let renewed = store.renew_lease(queue, lease(1), at(90)).await;
    assert!(renewed.expect("the call succeeds"));
    assert!(!lease_as_before(&client, queue, 50, 89).await, "renewed");

    // The node with the part is too late. The other one takes the queue, and releases it later.
    assert!(lease_as_before(&client, queue, 50, 90).await);
    for is_released in [false, true] {
        if is_released {
            let sql = "update queues set lease_id = null, leased_until = 0";
            client.batch_execute(sql).await.expect("released");
        }
        assert_eq!(one.take_due(lease(1), 91).await, None);
        assert!(!one.settle(lease(1), one.settlement(Vec::new(), 91)).await);
        let renewed = store.renew_lease(queue, lease(1), at(200)).await;
        assert!(!renewed.expect("the call succeeds"));
    }

    // A queue that the previous version leases is not shared.
    assert!(lease_as_before(&client, queue, 51, 100).await);
    assert!(one.lease_as(request(3, 149, 200)).await.is_none());
    assert!(one.lease_as(request(3, 150, 200)).await.is_some());
}
