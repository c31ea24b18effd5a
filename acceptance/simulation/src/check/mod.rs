//! The checks at the end of a run: what the server shows, what the networks received and what the
//! clients know must agree.

mod deliveries;
mod figures;
mod things;

use crate::client::api_key;
use crate::network::Networks;
use crate::node::{Call, Node, call};
use crate::scenario::Keys;
use crate::template::{Instance, NETWORKS, Template};
use crate::world::World;
use axum::Router;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tributary_domain::vocabulary::money::Amount;

/// Virtual time that the forwarder gets between two looks at the deliveries.
const FORWARDING_TIME: Duration = Duration::from_secs(4);
/// Time skipped between two looks, so that retries become due. The first ones are due soon.
const SHORT_SKIP: Duration = Duration::from_mins(10);
const LONG_SKIP: Duration = Duration::from_hours(8);
/// Number of short skips before the long ones.
const SHORT_SKIPS: u32 = 12;
/// Maximum number of skips. Together they exceed the age up to which an event is sent.
const SKIPS_MAX: u32 = 60;
/// Deliveries that one call expires.
const EXPIRE_MAX: u32 = 500;

/// Everything that a check needs.
pub(crate) struct Evidence<'a> {
    pub(crate) world: &'a World,
    pub(crate) networks: &'a Networks,
    pub(crate) node: &'a Node,
    pub(crate) instance: &'static Instance,
    pub(crate) folder: &'a Path,
    /// The event logs of both environments.
    pub(crate) logs: [(Keys, Vec<Value>); 2],
    /// The deliveries of both environments.
    pub(crate) deliveries: [(Keys, Vec<Value>); 2],
}

/// Lets the server finish, and checks everything.
pub(crate) async fn check(
    world: &Arc<World>,
    networks: &Arc<Networks>,
    node: Node,
    folder: &Path,
) -> Vec<String> {
    let instance = &Template::get().instance;
    drain(world, networks, &node, instance).await;
    let app = instance.app_path();
    let mut logs = Vec::new();
    let mut deliveries = Vec::new();
    for keys in [Keys::Live, Keys::Test] {
        let key = api_key(instance, keys);
        logs.push((
            keys,
            read_all(&node.router, &format!("{app}/events"), key).await,
        ));
        let path = format!("{app}/deliveries");
        deliveries.push((keys, read_all(&node.router, &path, key).await));
    }
    let evidence = Evidence {
        world,
        networks,
        node: &node,
        instance,
        folder,
        logs: logs.try_into().expect("two environments"),
        deliveries: deliveries.try_into().expect("two environments"),
    };
    let mut violations = things::check(&evidence);
    violations.extend(deliveries::check(&evidence));
    violations.extend(figures::check(&evidence).await);
    node.stop().await;
    violations
}

/// Lets time pass until no delivery is pending.
async fn drain(world: &World, networks: &Networks, node: &Node, instance: &Instance) {
    for skips in 0..SKIPS_MAX {
        tokio::time::sleep(FORWARDING_TIME).await;
        networks.receive_late(world.true_now()).await;
        let path = format!("{}/deliveries", instance.app_path());
        let pending = format!("{path}?status=pending");
        if read_all(&node.router, &pending, &instance.live_key)
            .await
            .is_empty()
        {
            return;
        }
        world.skip(if skips < SHORT_SKIPS {
            SHORT_SKIP
        } else {
            LONG_SKIP
        });
        if skips >= SHORT_SKIPS {
            resume_integrations(node, instance).await;
            let now = world.runtime_now();
            let expired = node.store.expire_deliveries(now, EXPIRE_MAX).await;
            expired.expect("the disk works");
        }
    }
}

async fn resume_integrations(node: &Node, instance: &Instance) {
    for network in NETWORKS {
        let path = format!("{}/integrations/{network}/resume", instance.app_path());
        let request = Call::new("POST", path).key(&instance.live_key);
        // Refused for an integration that is not paused.
        let _answer = call(&node.router, &request).await;
    }
}

/// Reads all pages of a list.
async fn read_all(router: &Router, path: &str, key: &str) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    let separator = if path.contains('?') { '&' } else { '?' };
    loop {
        let page = format!("{path}{separator}limit=500{cursor}");
        let answer = call(router, &Call::new("GET", page).key(key)).await;
        assert!(answer.status.is_success(), "{path}: {answer:?}");
        let rows = answer.body["data"].as_array();
        all.extend(rows.into_iter().flatten().cloned());
        match answer.body["meta"]["cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return all,
        }
    }
}

/// Reads an amount of money in millionths.
pub(crate) fn micros(number: &Value) -> i64 {
    if number.is_null() {
        return 0;
    }
    let text = number.to_string();
    let amount = Amount::parse(text.trim_matches('"'));
    amount.map_or(0, Amount::micros)
}
