//! Random and mutated postbacks at both endpoints: no panic, no 5xx, and only genuine ones count.
//!
//! `TRIBUTARY_FUZZ_POSTBACKS` sets the number of postbacks, `TRIBUTARY_FUZZ_SEED` the seed.

use crate::postbacks::{
    ADATTRIBUTIONKIT, APP_STORE_ID, DEVELOPMENT, PRODUCTION, SKADNETWORK, adattributionkit,
    create_advertised_app, post, server, skadnetwork, totals, vectors,
};
use crate::random::{SeededRng, env_number, odd_value, random_bytes};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tributary_testkit::{Engine, TestServer};

/// Default number of postbacks.
const POSTBACKS: u64 = 4_000;
/// Number of concurrent clients.
const CLIENTS: usize = 32;

/// Mutates the fields of a genuine postback, and sometimes its bytes.
fn mutated(rng: &mut SeededRng, seeds: &[Value]) -> Vec<u8> {
    let mut body = seeds[rng.below(seeds.len())].clone();
    let object = body.as_object_mut().unwrap();
    for _ in 0..rng.below(3) {
        let names: Vec<String> = object.keys().cloned().collect();
        let name = names[rng.below(names.len())].clone();
        match rng.below(4) {
            0 => drop(object.remove(&name)),
            1 => drop(object.insert(name, odd_value(rng))),
            2 => drop(object.insert(format!("relay-{}", rng.below(9)), odd_value(rng))),
            _ => {
                let other = names[rng.below(names.len())].clone();
                let value = object.get(&other).cloned().unwrap_or_default();
                object.insert(name, value);
            }
        }
        if object.is_empty() {
            break;
        }
    }
    let mut bytes = body.to_string().into_bytes();
    if rng.below(3) == 0 {
        for _ in 0..=rng.below(3) {
            let index = rng.below(bytes.len());
            match rng.below(4) {
                0 => bytes[index] = rng.next().to_le_bytes()[0],
                1 => drop(bytes.remove(index)),
                2 => bytes.truncate(index.max(1)),
                _ => bytes.insert(index, b"{}[]\",:\\0\xff\x00"[rng.below(11)]),
            }
            if bytes.is_empty() {
                bytes.push(b'{');
            }
        }
    }
    bytes
}

/// Builds the genuine postbacks to mutate. Each counts at most once, however it is changed or
/// repeated.
fn seeds() -> Vec<Value> {
    let mut seeds: Vec<Value> = (0..8).map(skadnetwork).collect();
    seeds.extend((0..4).map(|number| adattributionkit(PRODUCTION, number)));
    seeds.extend((0..2).map(|number| adattributionkit(DEVELOPMENT, number)));
    let published = vectors().unwrap_or_default();
    seeds.extend(
        published
            .iter()
            .map(|(_, body, _)| serde_json::from_str(body).unwrap()),
    );
    seeds
}

async fn run(server: Arc<TestServer>, seed: u64, count: u64) -> BTreeMap<u16, u64> {
    let seeds = seeds();
    let mut rng = SeededRng(seed);
    let mut statuses = BTreeMap::new();
    for number in 0..count {
        let endpoint = if rng.below(2) == 0 {
            SKADNETWORK
        } else {
            ADATTRIBUTIONKIT
        };
        let body = if rng.below(10) == 0 {
            random_bytes(&mut rng, 300)
        } else {
            mutated(&mut rng, &seeds)
        };
        let answer = post(&server, endpoint, body.clone()).await;
        let status = answer.status.as_u16();
        assert!(
            matches!(status, 200 | 400 | 413),
            "status {status} for postback {number} of seed {seed} at {endpoint}: {}",
            String::from_utf8_lossy(&body)
        );
        *statuses.entry(status).or_default() += 1;
    }
    statuses
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_postbacks_do_not_break_the_endpoints() {
    let (count, seed) = (
        env_number("TRIBUTARY_FUZZ_POSTBACKS", POSTBACKS),
        env_number("TRIBUTARY_FUZZ_SEED", 1),
    );
    let server = Arc::new(server(Engine::Sqlite).await);
    let key = server.full_key().await;
    let app = create_advertised_app(&server, &key, APP_STORE_ID).await;
    let started = Instant::now();
    let tasks: Vec<_> = (0..CLIENTS as u64)
        .map(|task| {
            tokio::spawn(run(
                server.clone(),
                seed * 1_000 + task,
                count / CLIENTS as u64,
            ))
        })
        .collect();
    let mut statuses: BTreeMap<u16, u64> = BTreeMap::new();
    for task in tasks {
        for (status, count) in task.await.expect("no 5xx response") {
            *statuses.entry(status).or_default() += count;
        }
    }
    println!(
        "{count} postbacks, seed {seed}, in {:?}: {statuses:?}",
        started.elapsed()
    );
    assert!(statuses[&200] > 0 && statuses[&400] > 0);
    // At most 13 postbacks are signed by an accepted key: eight of SKAdNetwork, four of
    // AdAttributionKit, and the published one with the short key.
    let counted = totals(&server, &app, &key).await["postbacks"]
        .as_i64()
        .unwrap();
    assert!((1..=13).contains(&counted), "{counted} counted");
}
