//! Events that are sent during a fault, one after the other, to measure the time until each is
//! answered.

use crate::instance::Instance;
use crate::load::Ledger;
use crate::requests::{Outcome, WebEvent};
use std::time::{Duration, Instant};

/// Longest time until a request is answered. The longest sequence of limits is that of a queued event:
/// ten seconds for its commit, after the caller was authenticated. The rest is slack.
const ANSWER_MAX: Duration = Duration::from_secs(15);
/// Concurrent senders.
const SENDERS: usize = 4;
/// Pause of a sender after an answer, because an outage may be answered at once.
const PAUSE: Duration = Duration::from_millis(50);
/// Amount of an event, in millionths of a dollar.
const AMOUNT: i64 = 2_000_000;

/// Results of the events.
#[derive(Debug, Default)]
pub(super) struct Probes {
    pub(super) ledger: Ledger,
    /// Longest time until an answer.
    pub(super) slowest: Duration,
    /// What was wrong.
    pub(super) problems: Vec<String>,
}

/// Sends events for this long, each at least once.
pub(super) async fn probe(instance: &Instance, name: &str, time: Duration) -> Probes {
    let senders = (0..SENDERS).map(|sender| send(instance, format!("{name}-{sender}"), time));
    let mut all = Probes::default();
    for probes in futures_util::future::join_all(senders).await {
        all.ledger.add(probes.ledger);
        all.slowest = all.slowest.max(probes.slowest);
        all.problems.extend(probes.problems);
    }
    if !is_alive(instance).await {
        all.problems.push("/healthz does not answer 200".to_owned());
    }
    all
}

async fn send(instance: &Instance, name: String, time: Duration) -> Probes {
    let mut probes = Probes::default();
    let begun = Instant::now();
    for number in 0.. {
        let id = format!("{name}-{number}");
        let event =
            WebEvent::purchase(&id, AMOUNT).request(&instance.site, 0, instance.site.now_ms());
        let sent = Instant::now();
        let outcome = event.send(&instance.site, &instance.addresses.next()).await;
        let took = sent.elapsed();
        probes.slowest = probes.slowest.max(took);
        if took > ANSWER_MAX {
            let problem = format!("an event was answered after {took:?}: {outcome:?}");
            probes.problems.push(problem);
        }
        if outcome == (Outcome::Unknown { answered: false }) {
            probes.problems.push("an event was not answered".to_owned());
        }
        probes.ledger.record(event, outcome);
        if begun.elapsed() >= time {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    probes
}

/// Returns whether the process says that it is alive, whatever the state of the database.
async fn is_alive(instance: &Instance) -> bool {
    let url = format!("{}/healthz", instance.addresses.next());
    let response = instance.site.client.get(url).send().await;
    response.is_ok_and(|response| response.status().is_success())
}
