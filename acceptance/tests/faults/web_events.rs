//! Website events under load, with a SIGKILL in every round: what was answered 202 is there, once, and the sums are
//! what the events come to.

use crate::website::{Website, micros, with};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tributary_testkit::{ServerProcess, TestDatabase, on_both_engines};

/// How often the server is killed.
const ROUNDS: u64 = 20;
/// Clients that send at a time.
const CLIENTS: usize = 16;

/// What a client knows: what it sent, in order, and what became of it.
#[derive(Default)]
struct Account {
    acknowledged: Vec<Value>,
    /// No answer, or one that says to try again.
    unknown: Vec<Value>,
    refused: u64,
}

/// A customer's story: a purchase, refunds of it of which the last is too much, a renewal that is given back.
fn story(site: &Website, name: &str) -> Vec<(Value, bool)> {
    let (order, renewal) = (format!("{name}-order"), format!("{name}-renewal"));
    let story = [
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
    let own = |(event, fits)| (with(&event, "deviceId", name), fits);
    story.map(own).to_vec()
}

/// Sends until an answer fails to come: the server is gone then.
async fn send_until_killed(site: Website, name: String) -> Account {
    let mut account = Account::default();
    for number in 0.. {
        for (event, fits) in story(&site, &format!("{name}-{number}")) {
            let answer = site.try_send(&event).await;
            match answer.as_ref().map(|answer| answer.status.as_u16()) {
                Some(202) => {
                    assert!(fits, "{event}: {answer:?}");
                    account.acknowledged.push(event);
                }
                Some(422) if !fits => account.refused += 1,
                None | Some(503) if !fits => return account,
                None | Some(503) => {
                    account.unknown.push(event);
                    return account;
                }
                _ => panic!("{event}: {answer:?}"),
            }
        }
    }
    account
}

/// What events come to in millionths of a dollar: paid, and given back.
fn sums<'a>(amounts: impl Iterator<Item = (&'a str, i64)>) -> (i64, i64) {
    amounts.fold((0, 0), |(paid, back), (kind, amount)| match kind {
        "refund" => (paid, back - amount),
        "checkout_started" => (paid, back),
        _ => (paid + amount, back),
    })
}

/// The sums of a roll-up table, read behind the server's back.
async fn rolled_up(database: &TestDatabase, table: &str) -> (i64, i64, usize) {
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
    async fn every_event_that_was_answered_202_is_there_once_after_kills(engine: Engine) {
        let begun = Instant::now();
        let database = TestDatabase::new(engine).await;
        let key = ServerProcess::full_key(&database);
        let mut site: Option<Website> = None;
        let mut total = Account::default();
        for round in 0..ROUNDS {
            let server = ServerProcess::start(&database).await;
            let here = match &site {
                Some(site) => site.through(server.base_url()),
                None => Website::open_at(server.base_url(), &key).await.at_real_time(),
            };
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| tokio::spawn(send_until_killed(here.clone(), format!("r{round}-c{client}"))))
                .collect();
            tokio::time::sleep(Duration::from_millis(500 + 137 * round % 900)).await;
            server.kill_now();
            for client in clients {
                let account = client.await.unwrap();
                total.acknowledged.extend(account.acknowledged);
                total.unknown.extend(account.unknown);
                total.refused += account.refused;
            }
            site = Some(here);
        }
        let server = ServerProcess::start(&database).await;
        let site = site.unwrap().through(server.base_url());
        // Before anything is repeated: what was acknowledged is there already, and not only after a retry.
        let early: BTreeMap<String, Value> = by_id(site.log().await).into_iter().map(|(id, mut one)| (id, one.remove(0))).collect();
        let lost: Vec<&str> = total.acknowledged.iter().map(id_of).filter(|id| !early.contains_key(*id)).collect();
        let (mut kept, mut retried) = (0, 0);
        for event in &total.unknown {
            let answer = site.send(event).await.expect(202);
            assert_eq!(answer.data()["duplicate"], early.contains_key(id_of(event)), "{event}: {answer:?}");
            if answer.data()["duplicate"] == true { kept += 1 } else { retried += 1 }
        }
        let stored = by_id(site.log().await);
        let sent: BTreeMap<&str, &Value> =
            total.acknowledged.iter().chain(&total.unknown).map(|event| (id_of(event), event)).collect();
        let phantom = stored.keys().filter(|id| !sent.contains_key(id.as_str())).count();
        let twice = stored.values().filter(|events| events.len() > 1).count();
        let missing = sent.keys().filter(|id| !stored.contains_key(**id)).count();
        let expected = sums(sent.values().map(|event| (event["eventType"].as_str().unwrap(), micros(&event["revenue"]))));
        let log = stored.values().flatten();
        let in_log = sums(log.map(|event| (event["name"].as_str().unwrap(), micros(&event["revenue"]["usd"]))));
        assert!(server.terminate().success());
        // A rebuild merges what was counted into the roll-ups, of every round, and compares them with the events.
        let rebuilt = ServerProcess::run(&database, &["rollups", "rebuild"]).unwrap();
        assert!(rebuilt.contains(", 0 were not"), "{rebuilt}");
        let mut wrong_sums = usize::from(in_log != expected);
        for table in ["rollup_networks", "rollup_campaigns", "rollup_credits", "rollup_names", "rollup_places"] {
            let found = rolled_up(&database, table).await;
            wrong_sums += usize::from(found != (expected.0, expected.1, stored.len()));
        }
        println!(
            "{engine:?}: {ROUNDS} kills, acknowledged {}, unknown {} (kept {kept}, retried {retried}), refused {}, \
             stored {}, lost {}, missing {missing}, phantom {phantom}, twice {twice}, wrong sums {wrong_sums}; \
             {} paid, {} given back, in millionths; {:?}",
            total.acknowledged.len(), total.unknown.len(), total.refused, stored.len(), lost.len(), expected.0, expected.1,
            begun.elapsed()
        );
        assert!(total.acknowledged.len() > 500, "the clients sent");
        assert!(total.unknown.len() > 20, "the kills came while they sent");
        assert!(lost.is_empty(), "lost {lost:?}");
        assert_eq!((missing, phantom, twice, wrong_sums), (0, 0, 0, 0));
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
