//! Random and mutated postbacks at both doors: no panic, nothing beyond 4xx, and whatever counts is genuine.
//!
//! A few thousand are sent every time; `TRIBUTARY_FUZZ_POSTBACKS` says how many instead, and `TRIBUTARY_FUZZ_SEED` where to begin.

use crate::postbacks::{
    ADATTRIBUTIONKIT, APP_STORE_ID, DEVELOPMENT, PRODUCTION, SKADNETWORK, adattributionkit,
    advertised, post, server, skadnetwork, totals, vectors,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tributary_testkit::{Engine, TestServer};

/// Without being told otherwise.
const POSTBACKS: u64 = 4_000;
/// Posts at a time.
const AT_ONCE: usize = 32;

#[expect(
    clippy::disallowed_methods,
    reason = "a long run is asked for from outside"
)]
fn told(name: &str, otherwise: u64) -> u64 {
    let told = std::env::var(name).ok();
    told.map_or(otherwise, |text| text.parse().expect("a number"))
}

/// A small generator: what matters is that a seed gives the same run.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }
}

fn odd_value(dice: &mut Dice) -> Value {
    let texts = [
        "",
        "0",
        "true",
        "39",
        "5239",
        "high",
        "none",
        "4.0",
        "1.0",
        "\u{0}",
        "\u{2063}",
        "é🚀",
        "AAAA.AAAA.AAAA",
    ];
    match dice.below(12) {
        0 => Value::Null,
        1 => json!(dice.next().is_multiple_of(2)),
        2 => json!(i64::MIN),
        3 => json!(u64::MAX),
        4 => json!(1.5),
        5 => json!(-1),
        6 => json!(dice.below(70)),
        7 => json!([[], {}]),
        8 => json!({"a": {"b": [1]}}),
        9 => json!("x".repeat(dice.below(400))),
        10 => json!(1e300),
        _ => json!(texts[dice.below(texts.len())]),
    }
}

/// One that somebody played with: its fields, then perhaps its bytes.
fn mutated(dice: &mut Dice, seeds: &[Value]) -> Vec<u8> {
    let mut body = seeds[dice.below(seeds.len())].clone();
    let object = body.as_object_mut().unwrap();
    for _ in 0..dice.below(3) {
        let names: Vec<String> = object.keys().cloned().collect();
        let name = names[dice.below(names.len())].clone();
        match dice.below(4) {
            0 => drop(object.remove(&name)),
            1 => drop(object.insert(name, odd_value(dice))),
            2 => drop(object.insert(format!("relay-{}", dice.below(9)), odd_value(dice))),
            _ => {
                let other = names[dice.below(names.len())].clone();
                let value = object.get(&other).cloned().unwrap_or_default();
                object.insert(name, value);
            }
        }
        if object.is_empty() {
            break;
        }
    }
    let mut bytes = body.to_string().into_bytes();
    if dice.below(3) == 0 {
        for _ in 0..=dice.below(3) {
            let place = dice.below(bytes.len());
            match dice.below(4) {
                0 => bytes[place] = dice.next().to_le_bytes()[0],
                1 => drop(bytes.remove(place)),
                2 => bytes.truncate(place.max(1)),
                _ => bytes.insert(place, b"{}[]\",:\\0\xff\x00"[dice.below(11)]),
            }
            if bytes.is_empty() {
                bytes.push(b'{');
            }
        }
    }
    bytes
}

fn random(dice: &mut Dice) -> Vec<u8> {
    let length = dice.below(300);
    (0..length).map(|_| dice.next().to_le_bytes()[0]).collect()
}

/// Genuine ones to begin with. Every one of them counts at most once, however often and in whatever shape it is sent.
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
    let mut dice = Dice(seed);
    let mut statuses = BTreeMap::new();
    for number in 0..count {
        let door = if dice.below(2) == 0 {
            SKADNETWORK
        } else {
            ADATTRIBUTIONKIT
        };
        let body = if dice.below(10) == 0 {
            random(&mut dice)
        } else {
            mutated(&mut dice, &seeds)
        };
        let answer = post(&server, door, body.clone()).await;
        let status = answer.status.as_u16();
        assert!(
            matches!(status, 200 | 400 | 413),
            "{status} to number {number} of seed {seed} at {door}: {}",
            String::from_utf8_lossy(&body)
        );
        *statuses.entry(status).or_default() += 1;
    }
    statuses
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_is_posted_breaks_the_doors() {
    let (count, seed) = (
        told("TRIBUTARY_FUZZ_POSTBACKS", POSTBACKS),
        told("TRIBUTARY_FUZZ_SEED", 1),
    );
    let server = Arc::new(server(Engine::Sqlite).await);
    let key = server.full_key().await;
    let app = advertised(&server, &key, APP_STORE_ID).await;
    let begun = Instant::now();
    let tasks: Vec<_> = (0..AT_ONCE as u64)
        .map(|task| {
            tokio::spawn(run(
                server.clone(),
                seed * 1_000 + task,
                count / AT_ONCE as u64,
            ))
        })
        .collect();
    let mut statuses: BTreeMap<u16, u64> = BTreeMap::new();
    for task in tasks {
        for (status, count) in task.await.expect("no answer beyond 4xx") {
            *statuses.entry(status).or_default() += count;
        }
    }
    println!(
        "{count} postbacks, seed {seed}, in {:?}: {statuses:?}",
        begun.elapsed()
    );
    assert!(statuses[&200] > 0 && statuses[&400] > 0);
    // Signed by a key that counts: eight of SKAdNetwork, four of AdAttributionKit, and of the published ones the one with
    // the short key, at most.
    let counted = totals(&server, &app, &key).await["postbacks"]
        .as_i64()
        .unwrap();
    assert!((1..=13).contains(&counted), "{counted} count");
}
