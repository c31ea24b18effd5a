//! Web events under load with a SIGKILL in every round: every event that got 202 is stored once,
//! and the roll-ups equal the sums of the events.

use crate::random::env_number;
use crate::website::{Website, micros, with};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tributary_testkit::{ServerProcess, TestDatabase, on_both_engines};

/// How often the server is killed by default; `TRIBUTARY_KILL_ROUNDS` changes it.
const ROUNDS: u64 = 6;
/// Minimum of acknowledged events and of interrupted requests per kill, on average.
const ACKNOWLEDGED_MIN: u64 = 25;
const INTERRUPTED_MIN: u64 = 1;
/// Concurrent clients.
const CLIENTS: usize = 16;

/// Events that a client sent, by result.
#[derive(Default)]
struct ClientResults {
    acknowledged: Vec<Value>,
    /// No response, or 503.
    unknown: Vec<Value>,
    refused: u64,
}

/// Returns events of one customer and whether each is valid: a purchase, refunds of which the third
/// exceeds the payment, a renewal and its refund, a checkout.
fn customer_events(site: &Website, name: &str) -> Vec<(Value, bool)> {
    let (order, renewal) = (format!("{name}-order"), format!("{name}-renewal"));
    let events = [
        (site.purchase(&order, "100.00"), true),
        (
            site.refund(&format!("{name}-refund-1"), "-30.00", &order),
            true,
        ),
        (
            site.refund(&format!("{name}-refund-2"), "-33.333333", &order),
            true,
        ),
        (
            site.refund(&format!("{name}-refund-3"), "-36.666668", &order),
            false,
        ),
        (site.child(&renewal, "renewal", "25.50", &order), true),
        (
            site.refund(&format!("{name}-refund-4"), "-25.50", &renewal),
            true,
        ),
        (
            site.priced(&format!("{name}-checkout"), "checkout_started", "9.99"),
            true,
        ),
    ];
    let of_customer = |(event, is_valid)| (with(&event, "deviceId", name), is_valid);
    events.map(of_customer).to_vec()
}

/// Sends events until the server no longer responds.
async fn send_until_killed(site: Website, name: String) -> ClientResults {
    let mut results = ClientResults::default();
    for number in 0.. {
        for (event, is_valid) in customer_events(&site, &format!("{name}-{number}")) {
            let answer = site.try_send(&event).await;
            match answer.as_ref().map(|answer| answer.status.as_u16()) {
                Some(202) => {
                    assert!(is_valid, "{event}: {answer:?}");
                    results.acknowledged.push(event);
                }
                Some(422) if !is_valid => results.refused += 1,
                None | Some(503) if !is_valid => return results,
                None | Some(503) => {
                    results.unknown.push(event);
                    return results;
                }
                _ => panic!("{event}: {answer:?}"),
            }
        }
    }
    results
}

/// Sums payments and refunds in millionths of a dollar.
fn sums<'a>(amounts: impl Iterator<Item = (&'a str, i64)>) -> (i64, i64) {
    amounts.fold((0, 0), |(paid, refunded), (kind, amount)| match kind {
        "refund" => (paid, refunded - amount),
        "checkout_started" => (paid, refunded),
        _ => (paid + amount, refunded),
    })
}

/// Reads the sums of a roll-up table directly from the database.
async fn rollup_sums(database: &TestDatabase, table: &str) -> (i64, i64, usize) {
    let sql = format!(
        "select sum(revenue_micros), sum(refunded_micros), sum(events) from {table} where grain = 60"
    );
    let row = database
        .direct_connection()
        .await
        .rows(&sql)
        .await
        .remove(0);
    let number = |column: usize| row[column].as_deref().unwrap().parse::<i64>().unwrap();
    (number(0), number(1), usize::try_from(number(2)).unwrap())
}

on_both_engines! {
    async fn every_acknowledged_event_is_stored_once_after_kills(engine: Engine) {
        let begun = Instant::now();
        let database = TestDatabase::new(engine).await;
        let key = ServerProcess::full_key(&database);
        let mut site: Option<Website> = None;
        let mut total = ClientResults::default();
        let rounds = env_number("TRIBUTARY_KILL_ROUNDS", ROUNDS);
        for round in 0..rounds {
            let server = ServerProcess::start(&database).await;
            let current = match &site {
                Some(site) => site.through(server.base_url()),
                None => Website::open_at(server.base_url(), &key).await.at_real_time(),
            };
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| tokio::spawn(send_until_killed(current.clone(), format!("r{round}-c{client}"))))
                .collect();
            tokio::time::sleep(Duration::from_millis(500 + 137 * round % 900)).await;
            server.kill_now();
            for client in clients {
                let results = client.await.unwrap();
                total.acknowledged.extend(results.acknowledged);
                total.unknown.extend(results.unknown);
                total.refused += results.refused;
            }
            site = Some(current);
        }
        let server = ServerProcess::start(&database).await;
        let site = site.unwrap().through(server.base_url());
        // Acknowledged events must be stored before any retry.
        let early: BTreeMap<String, Value> = by_id(site.log().await).into_iter().map(|(id, mut one)| (id, one.remove(0))).collect();
        let lost: Vec<&str> = total.acknowledged.iter().map(id_of).filter(|id| !early.contains_key(*id)).collect();
        let (mut already_stored, mut retried) = (0, 0);
        for event in &total.unknown {
            let answer = site.send(event).await.expect(202);
            assert_eq!(answer.data()["duplicate"], early.contains_key(id_of(event)), "{event}: {answer:?}");
            if answer.data()["duplicate"] == true { already_stored += 1 } else { retried += 1 }
        }
        let stored = by_id(site.log().await);
        let sent: BTreeMap<&str, &Value> =
            total.acknowledged.iter().chain(&total.unknown).map(|event| (id_of(event), event)).collect();
        let phantom = stored.keys().filter(|id| !sent.contains_key(id.as_str())).count();
        let duplicated = stored.values().filter(|events| events.len() > 1).count();
        let missing = sent.keys().filter(|id| !stored.contains_key(**id)).count();
        let expected = sums(sent.values().map(|event| (event["eventType"].as_str().unwrap(), micros(&event["revenue"]))));
        let log = stored.values().flatten();
        let in_log = sums(log.map(|event| (event["name"].as_str().unwrap(), micros(&event["revenue"]["usd"]))));
        assert!(server.terminate().success());
        // The rebuild merges all increments and compares the roll-ups with the events.
        let rebuilt = ServerProcess::run(&database, &["rollups", "rebuild"]).unwrap();
        assert!(rebuilt.contains(", 0 were corrected"), "{rebuilt}");
        let mut wrong_sums = usize::from(in_log != expected);
        for table in ["rollup_networks", "rollup_campaigns", "rollup_credits", "rollup_names", "rollup_places", "rollup_pivots"] {
            let found = rollup_sums(&database, table).await;
            wrong_sums += usize::from(found != (expected.0, expected.1, stored.len()));
        }
        println!(
            "{engine:?}: {rounds} kills, acknowledged {}, unknown {} (already stored {already_stored}, retried {retried}), refused {}, \
             stored {}, lost {}, missing {missing}, phantom {phantom}, duplicated {duplicated}, wrong sums {wrong_sums}; \
             {} paid, {} refunded, in millionths; {:?}",
            total.acknowledged.len(), total.unknown.len(), total.refused, stored.len(), lost.len(), expected.0, expected.1,
            begun.elapsed()
        );
        assert!(total.acknowledged.len() as u64 > ACKNOWLEDGED_MIN * rounds, "the clients sent too few events");
        assert!(total.unknown.len() as u64 > INTERRUPTED_MIN * rounds, "too few requests were interrupted by kills");
        assert!(lost.is_empty(), "lost {lost:?}");
        assert_eq!((missing, phantom, duplicated, wrong_sums), (0, 0, 0, 0));
    }
}

fn id_of(event: &Value) -> &str {
    event["eventId"].as_str().unwrap()
}

fn by_id(log: Vec<Value>) -> BTreeMap<String, Vec<Value>> {
    let mut events: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for event in log {
        events
            .entry(id_of(&event).to_owned())
            .or_default()
            .push(event);
    }
    events
}
