//! The load: clients that act as taps, apps, websites and billing providers, and write down what they
//! were told.

use crate::instance::{Addresses, Instance};
use crate::requests::{
    CreatedEvent, LoadRequest, Outcome, WebEvent, configure, in_test_environment, sdk_events,
    subscription,
};
use crate::site::{NETWORKS, Site};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// Clients of one load.
pub const CLIENTS: usize = 16;
/// Pause after a request without a response, because a node that is down refuses connections at once.
const UNANSWERED_PAUSE: Duration = Duration::from_millis(20);
/// Wrong answers that a client describes. The rest is only counted.
const WRONG_KEPT: usize = 5;
/// Longest wait until a load has had a number of requests acknowledged. Later is a failure: the server
/// does not accept what it should.
const PROGRESS_MAX: Duration = Duration::from_mins(1);
/// Amounts in millionths of a dollar. Two refunds together exceed the payment.
const PAYMENT: i64 = 100_000_000;
const REFUND: i64 = 60_000_000;
const RENEWAL: i64 = 25_500_000;
const IN_APP: i64 = 1_250_000;

/// What the clients were told.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Events by key, with their amounts, whose request was acknowledged.
    pub acknowledged: BTreeMap<String, i64>,
    /// Click ids in redirects.
    pub clicks: BTreeSet<String>,
    /// Taps without a click id in the response. Their clicks may be stored.
    pub unanswered_taps: u64,
    /// Requests to repeat after the fault.
    pub unknown: Vec<LoadRequest>,
    /// Acknowledged requests.
    pub requests: u64,
    /// Requests without a response.
    pub unanswered: u64,
    /// Requests with a response that asks to repeat them.
    pub unavailable: u64,
    /// Requests that a rule rejected, as it may.
    pub refused: u64,
    /// Number of responses that the request does not allow.
    pub wrong: u64,
    /// Descriptions of some of them.
    pub wrong_answers: Vec<String>,
}

impl Ledger {
    /// Adds what another client was told.
    pub fn add(&mut self, other: Self) {
        self.acknowledged.extend(other.acknowledged);
        self.clicks.extend(other.clicks);
        self.unanswered_taps += other.unanswered_taps;
        self.unknown.extend(other.unknown);
        self.requests += other.requests;
        self.unanswered += other.unanswered;
        self.unavailable += other.unavailable;
        self.refused += other.refused;
        self.wrong += other.wrong;
        self.wrong_answers.extend(other.wrong_answers);
    }

    /// Writes down an outcome. Returns whether the request was acknowledged.
    pub fn record(&mut self, request: LoadRequest, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Acknowledged => {
                self.requests += 1;
                self.acknowledge(&request.creates);
                return true;
            }
            Outcome::Refused => self.refused += 1,
            Outcome::Unknown { answered } => {
                self.unavailable += u64::from(answered);
                self.unanswered += u64::from(!answered);
                self.unknown.push(request);
            }
            Outcome::Wrong(description) => {
                self.wrong += 1;
                if self.wrong_answers.len() < WRONG_KEPT {
                    self.wrong_answers.push(description);
                }
            }
        }
        false
    }

    /// Adds events whose request was acknowledged.
    pub fn acknowledge(&mut self, events: &[CreatedEvent]) {
        let events = events.iter().map(|event| (event.key.clone(), event.micros));
        self.acknowledged.extend(events);
    }
}

/// A running load.
pub struct Load {
    is_stopped: Arc<AtomicBool>,
    acknowledged: Arc<AtomicU64>,
    clients: Vec<JoinHandle<Ledger>>,
}

impl Load {
    /// Starts [`CLIENTS`] clients. `name` is a prefix of all ids and differs for each load of an
    /// instance.
    pub fn start(instance: &Instance, name: &str, seed: u64) -> Self {
        Self::start_with(instance, name, seed, CLIENTS)
    }

    /// Starts a load with another number of clients.
    pub fn start_with(instance: &Instance, name: &str, seed: u64, clients: usize) -> Self {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let acknowledged = Arc::new(AtomicU64::new(0));
        let start = |number: usize| {
            let seed = seed.wrapping_mul(1_000).wrapping_add(number as u64);
            let client = LoadClient {
                site: instance.site.clone(),
                addresses: instance.addresses.clone(),
                name: format!("{name}-c{number}"),
                random: ChaCha8Rng::seed_from_u64(seed),
                ledger: Ledger::default(),
                acknowledged: acknowledged.clone(),
            };
            tokio::spawn(client.run(is_stopped.clone()))
        };
        let clients = (0..clients).map(start).collect();
        Self {
            is_stopped,
            acknowledged,
            clients,
        }
    }

    /// Waits until this many more requests were acknowledged. Returns false after a minute.
    pub async fn progress(&self, requests: u64) -> bool {
        let target = self.acknowledged.load(Ordering::Relaxed) + requests;
        let begun = Instant::now();
        while self.acknowledged.load(Ordering::Relaxed) < target {
            if begun.elapsed() > PROGRESS_MAX {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        true
    }

    /// Stops the clients and returns what they were told.
    pub async fn stop(self) -> Ledger {
        self.is_stopped.store(true, Ordering::Relaxed);
        let mut ledger = Ledger::default();
        for client in self.clients {
            ledger.add(client.await.expect("a client does not panic"));
        }
        ledger
    }
}

/// One client.
struct LoadClient {
    site: Site,
    addresses: Arc<Addresses>,
    name: String,
    random: ChaCha8Rng,
    ledger: Ledger,
    acknowledged: Arc<AtomicU64>,
}

impl LoadClient {
    /// Serves one customer after another until the load stops.
    async fn run(mut self, is_stopped: Arc<AtomicBool>) -> Ledger {
        for number in 0.. {
            if is_stopped.load(Ordering::Relaxed) {
                break;
            }
            let id = format!("{}-{number}", self.name);
            match self.random.random_range(0..8) {
                0..3 => self.buy_on_website(&id).await,
                3..6 => self.use_app(&id).await,
                6 => self.subscribe(&id).await,
                _ => self.test_app(&id).await,
            }
        }
        self.ledger
    }

    /// Sends a request, and sometimes repeats it at once. Returns whether it was acknowledged.
    async fn send(&mut self, request: LoadRequest) -> bool {
        let outcome = request.send(&self.site, &self.addresses.next()).await;
        self.finish(request, outcome).await
    }

    async fn finish(&mut self, request: LoadRequest, outcome: Outcome) -> bool {
        if outcome == (Outcome::Unknown { answered: false }) {
            tokio::time::sleep(UNANSWERED_PAUSE).await;
        }
        let repeated = (outcome == Outcome::Acknowledged && self.random.random_ratio(1, 10))
            .then(|| request.clone());
        let is_acknowledged = self.ledger.record(request, outcome);
        self.acknowledged
            .fetch_add(u64::from(is_acknowledged), Ordering::Relaxed);
        if let Some(request) = repeated {
            let outcome = request.send(&self.site, &self.addresses.next()).await;
            self.ledger.record(request, outcome);
        }
        is_acknowledged
    }

    /// Taps a link. Returns the click id.
    async fn tap(&mut self, link: String) -> Option<String> {
        let (_, parameter) = NETWORKS[self.random.random_range(0..NETWORKS.len())];
        let path = format!("{link}?{parameter}=E.C.P.1");
        let click = self.site.tap(&self.addresses.next(), &path).await;
        if let Some(click) = &click {
            self.ledger.requests += 1;
            self.acknowledged.fetch_add(1, Ordering::Relaxed);
            self.ledger.clicks.insert(click.clone());
        } else {
            self.ledger.unanswered_taps += 1;
            tokio::time::sleep(UNANSWERED_PAUSE).await;
        }
        click
    }

    /// A visitor taps an advertisement and pays; then two refunds compete, or the payment is renewed.
    async fn buy_on_website(&mut self, id: &str) {
        self.tap(format!("/w/{}", self.site.funnel)).await;
        let network = self.random.random_range(0..NETWORKS.len());
        let order = format!("{id}-order");
        let request =
            WebEvent::purchase(&order, PAYMENT).request(&self.site, network, self.site.now_ms());
        if !self.send(request).await {
            return;
        }
        let child = format!("{id}-child");
        if self.random.random_bool(0.5) {
            let renewal = WebEvent::renewal(&child, RENEWAL, &order);
            let request = renewal.request(&self.site, network, self.site.now_ms());
            self.send(request).await;
            return;
        }
        let other = format!("{id}-other");
        let refunds = [&child, &other].map(|refund| {
            WebEvent::refund(refund, REFUND, &order).request(
                &self.site,
                network,
                self.site.now_ms(),
            )
        });
        let nodes = [self.addresses.next(), self.addresses.next()];
        let outcomes = futures_util::future::join(
            refunds[0].send(&self.site, &nodes[0]),
            refunds[1].send(&self.site, &nodes[1]),
        )
        .await;
        let [first, second] = refunds;
        self.finish(first, outcomes.0).await;
        self.finish(second, outcomes.1).await;
    }

    /// A person installs the app, mostly after a tap, and uses it.
    async fn use_app(&mut self, id: &str) {
        let click = if self.random.random_bool(0.75) {
            self.tap(format!("/c/{}", self.site.store_link)).await
        } else {
            None
        };
        let device = format!("{id}-device");
        if self.send(configure(&device, click.as_deref())).await {
            self.send(sdk_events(&device, IN_APP)).await;
        }
    }

    /// A person subscribes in the app. The provider's notifications may arrive in any order.
    async fn subscribe(&mut self, id: &str) {
        let device = format!("{id}-subscriber");
        if !self.send(configure(&device, None)).await {
            return;
        }
        let mut notifications = subscription(&self.site, &device, self.site.now_ms());
        if self.random.random_bool(0.5) {
            notifications.reverse();
        }
        for notification in notifications {
            self.send(notification).await;
        }
    }

    /// A developer tries the app with the test key.
    async fn test_app(&mut self, id: &str) {
        let click = self.tap(format!("/c/{}", self.site.store_link)).await;
        let device = format!("{id}-tester");
        let first = in_test_environment(configure(&device, click.as_deref()));
        if self.send(first).await {
            self.send(in_test_environment(sdk_events(&device, IN_APP)))
                .await;
        }
    }
}
