//! The clients: they send their requests one after another, repeat those without an answer, and note
//! what they learn.

use crate::model::{Key, Kind, Outcome};
use crate::node::{Answer, Call, call};
use crate::requests;
use crate::scenario::{Keys, Request};
use crate::template::Instance;
use crate::world::World;
use axum::Router;
use axum::http::StatusCode;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Longest pause of a client between two requests, in milliseconds.
const PAUSE_MAX: u64 = 40;
/// How often, in percent, a client gives up soon instead of waiting for the answer.
const IMPATIENCE_PERCENT: u64 = 6;
/// Longest wait of an impatient client, in milliseconds.
const IMPATIENCE_MAX: u64 = 12;
/// How often, in percent, a client repeats a request at once that remained without an answer.
const REPEAT_PERCENT: u64 = 70;
/// How often, in percent, a client sends a request again although it was acknowledged.
const DUPLICATE_PERCENT: u64 = 10;

/// How often a client sends a request. An event whose payment was refused is refused each time.
const ATTEMPTS_MAX: u32 = 12;

/// What a client needs.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) world: Arc<World>,
    pub(crate) instance: &'static Instance,
    pub(crate) router: Router,
    pub(crate) folder: PathBuf,
    /// Whether to repeat all requests until they have an answer.
    pub(crate) is_final: bool,
}

impl Client {
    /// Sends the client's requests.
    pub(crate) async fn run(self, index: usize) {
        while let Some(number) = self.next(index) {
            self.world.wait_at_most(PAUSE_MAX).await;
            let request = self.world.ledger().requests.get(&number).cloned();
            let Some(request) = request else { break };
            let is_settled = self.perform(number, &request).await;
            let mut ledger = self.world.ledger();
            let client = &mut ledger.clients[index];
            client.current = None;
            if is_settled {
                continue;
            }
            let attempts = client.attempts.entry(number).or_default();
            *attempts += 1;
            if *attempts < ATTEMPTS_MAX {
                client.again.push(number);
            }
        }
    }

    /// Takes the next request. A client of the last process repeats everything that has no answer.
    fn next(&self, index: usize) -> Option<u32> {
        let repeats = self.is_final || self.world.random(100) < REPEAT_PERCENT;
        let mut ledger = self.world.ledger();
        let client = &mut ledger.clients[index];
        let is_empty = client.waiting.is_empty() && !client.again.is_empty();
        let next = match client.again.first() {
            Some(_) if repeats => Some(client.again.remove(0)),
            _ if is_empty => Some(client.again.remove(0)),
            _ => client.waiting.pop(),
        };
        client.current = next;
        next
    }

    /// Performs a request. Returns whether it needs no repetition.
    async fn perform(&self, number: u32, request: &Request) -> bool {
        match request {
            Request::Wait { millis } => tokio::time::sleep(Duration::from_millis(*millis)).await,
            Request::JumpClock { millis } => self.world.jump(*millis),
            Request::HoldSnapshot { millis } => self.hold_snapshot(*millis).await,
            Request::Report => self.read_reports().await,
            Request::Erase => return self.erase(number).await,
            Request::SdkEvents { .. } => return self.send_sdk_events(number, request).await,
            _ => return self.send(number, request).await,
        }
        true
    }

    /// Sends a request that records one thing.
    async fn send(&self, number: u32, request: &Request) -> bool {
        let Some((key, call)) = requests::build(&self.world, self.instance, number, request) else {
            return true;
        };
        let earlier = {
            let mut ledger = self.world.ledger();
            let earlier = ledger.may_be_processed(number, &key);
            ledger.sent(number, &key);
            earlier
        };
        let answer = self.call(&call).await;
        let outcome = self.read_outcome(number, request, answer);
        self.note(number, &key, outcome, earlier);
        let is_acknowledged = matches!(outcome, Outcome::Acknowledged { .. });
        // A tap sent again is another click.
        let is_tap = key.kind == Kind::Click;
        let repeats = is_acknowledged
            && !is_tap
            && !self.is_final
            && self.world.random(100) < DUPLICATE_PERCENT;
        match outcome {
            Outcome::Unknown | Outcome::RefusedForNow => is_tap,
            _ => !repeats,
        }
    }

    fn note(&self, number: u32, key: &Key, outcome: Outcome, earlier: bool) {
        self.world.trace(outcome_name(outcome), i64::from(number));
        self.world.ledger().answered(number, key, outcome, earlier);
    }

    /// Reads what an answer says.
    fn read_outcome(&self, number: u32, request: &Request, answer: Option<Answer>) -> Outcome {
        let Some(answer) = answer else {
            return Outcome::Unknown;
        };
        match requests::outcome(request, &answer) {
            Ok((outcome, click)) => {
                if let Some(click) = click {
                    self.world.ledger().click_ids.insert(number, click);
                }
                outcome
            }
            Err(unexpected) => {
                let unexpected = format!("request {number}: {unexpected}");
                self.world.ledger().unexpected.push(unexpected);
                Outcome::Unknown
            }
        }
    }

    /// Sends a batch of SDK events, each with its own outcome.
    async fn send_sdk_events(&self, number: u32, request: &Request) -> bool {
        let (keys, call) = requests::build_sdk_events(&self.world, self.instance, number, request);
        let mut earlier = Vec::new();
        for key in &keys {
            let mut ledger = self.world.ledger();
            earlier.push(ledger.may_be_processed(number, key));
            ledger.sent(number, key);
        }
        let answer = self.call(&call).await;
        let outcomes = match answer {
            None => vec![Outcome::Unknown; keys.len()],
            Some(answer) => match requests::sdk_outcomes(&answer, keys.len()) {
                Ok(outcomes) => outcomes,
                Err(unexpected) => {
                    self.world.ledger().unexpected.push(unexpected);
                    vec![Outcome::Unknown; keys.len()]
                }
            },
        };
        for ((key, outcome), earlier) in keys.iter().zip(&outcomes).zip(earlier) {
            self.note(number, key, *outcome, earlier);
        }
        !outcomes.contains(&Outcome::Unknown)
    }

    /// Sends a purchase of a new device and then erases the device.
    async fn erase(&self, number: u32) -> bool {
        let device = requests::erased_device(number);
        let purchase = requests::purchase_to_erase(number);
        if !self.send(number, &purchase).await {
            return false;
        }
        let path = format!("{}/devices/{device}", self.instance.app_path());
        let call = Call::new("DELETE", path).key(&self.instance.live_key);
        match self.call(&call).await {
            Some(answer) if answer.status == StatusCode::NO_CONTENT => {
                self.world.trace("erased", i64::from(number));
                self.world.ledger().erased.insert(device);
                true
            }
            // The purchase was refused, so there is no device.
            Some(answer) if answer.status == StatusCode::NOT_FOUND => true,
            Some(answer) if answer.status == StatusCode::SERVICE_UNAVAILABLE => false,
            Some(answer) => {
                let unexpected = format!("erasure {number}: {answer:?}");
                self.world.ledger().unexpected.push(unexpected);
                true
            }
            None => false,
        }
    }

    /// Reads reports, whose content is checked at the end of the run.
    async fn read_reports(&self) {
        let app = self.instance.app_path();
        for path in [
            "stats?groupBy=network",
            "events?limit=50",
            "deliveries?limit=50",
        ] {
            let call = Call::new("GET", format!("{app}/{path}")).key(&self.instance.live_key);
            if let Some(answer) = self.call(&call).await {
                let status = answer.status;
                self.world.trace("report", i64::from(status.as_u16()));
                if !status.is_success() && status != StatusCode::SERVICE_UNAVAILABLE {
                    let unexpected = format!("report: {answer:?}");
                    self.world.ledger().unexpected.push(unexpected);
                }
            }
        }
    }

    /// Opens another connection and keeps a snapshot, which prevents the WAL's restart.
    async fn hold_snapshot(&self, millis: u64) {
        let path = self.folder.join(crate::disk::DATABASE);
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
        let Ok(connection) = rusqlite::Connection::open_with_flags(path, flags) else {
            return;
        };
        let begun = connection.execute_batch("begin; select count(*) from events");
        self.world.trace("snapshot", i64::from(begun.is_ok()));
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }

    /// Sends a request. Returns `None` if the client gave up or the process died before the answer.
    async fn call(&self, request: &Call) -> Option<Answer> {
        let answered = call(&self.router, request);
        let is_impatient = !self.is_final && self.world.random(100) < IMPATIENCE_PERCENT;
        let answer = if is_impatient {
            let patience = Duration::from_millis(self.world.random(IMPATIENCE_MAX) + 1);
            tokio::time::timeout(patience, answered).await.ok()
        } else {
            Some(answered.await)
        };
        answer.filter(|_| !self.world.is_down())
    }
}

const fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Acknowledged { is_new: true } => "new",
        Outcome::Acknowledged { is_new: false } => "duplicate",
        Outcome::Refused => "refused",
        Outcome::RefusedForNow => "refused for now",
        Outcome::Unknown => "unknown",
    }
}

/// Returns the keys of an environment.
pub(crate) fn api_key(instance: &Instance, keys: Keys) -> &str {
    match keys {
        Keys::Live => &instance.live_key,
        Keys::Test => &instance.test_key,
    }
}
