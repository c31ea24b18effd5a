//! Ten times the rate that the server takes, beside thousands of idle connections, slow readers and
//! slow writers. What is admitted is answered in time, the rest is refused, memory stays bounded, and
//! the server recovers at once.

use super::Episode;
use crate::account::Totals;
use crate::check::check;
use crate::idle::IdleConnections;
use crate::instance::{Instance, settings};
use crate::load::Ledger;
use crate::raw_http::{
    Answer, RawClient, allowed_descriptors, exchange, export_request, long_request, slow_reader,
    slow_writer, tap_request,
};
use crate::requests::{LoadRequest, Outcome, WebEvent, now_ms};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tributary_testkit::{Engine, ServerProcess};

/// Idle connections per round of an episode: 2,000 in a short one and 20,000 in a long one.
const IDLE_PER_ROUND: u64 = 2_000;
/// Seconds until the server closes an idle connection: longer than an episode, which needs them.
const IDLE_TIMEOUT: &str = "3600";
/// Nodes. A node has at most as many connections as descriptors, so two hold more than one.
const fn nodes(engine: Engine) -> usize {
    match engine {
        Engine::Sqlite => 1,
        Engine::Postgres => 2,
    }
}
/// Connections that the server allows: more than the idle and the busy ones.
const CONNECTIONS: &str = "60000";
/// How much more than the measured rate is offered.
const FACTOR: u32 = 10;
/// Connections of the closed loop that measures the rate. Enough that commits are shared, because few
/// connections do not show what the server takes.
const MEASURING_CLIENTS: usize = 128;
/// Requests that each of them sends at most.
const MEASURED_REQUESTS: usize = 300;
const MEASURING_TIME: Duration = Duration::from_secs(2);
/// Requests without an answer at a time. Each needs a descriptor of the server, as an idle connection
/// does.
const OUTSTANDING_MAX: usize = 5_000;
/// Seconds of work that may be without an answer, so that a slow machine is not asked for the
/// impossible within the request timeout.
const OUTSTANDING_SECONDS: usize = 5;
/// Descriptors of a node for everything else: the database, slow clients and the networks.
const RESERVED_DESCRIPTORS: u64 = 500;
/// Limit of late and missing answers, per thousand sent requests. The kernel completes connections that
/// do not fit into the server's backlog, and drops what is sent on them.
const LATE_PER_MILLE_MAX: u64 = 100;
/// One of so many requests is a tap.
const TAP_SHARE: u64 = 10;
/// Connections that read slowly, and as many that write slowly.
const SLOW_CLIENTS: u64 = 20;
/// Longest time for an admitted request: the server's request timeout of 30 seconds, and a moment to
/// notice it on a machine without idle time.
const ADMITTED_MAX: Duration = Duration::from_secs(33);
/// Limit of the 99th percentile of the admitted. The clients let the server have a few seconds of work
/// at a time and take half of the processors, so most of it waits for about ten seconds at worst. The rest is
/// for other tests on the same processors.
const ADMITTED_P99_MAX: Duration = Duration::from_secs(25);
/// Longest time from the end of the load until an event is accepted as usual.
const USUAL_AGAIN_MAX: Duration = Duration::from_secs(10);
/// Memory that a connection may take: its buffers and its task.
const CONNECTION_KIB_MAX: u64 = 48;
/// Memory that the load may take besides: queues and caches, which have limits.
const LOAD_KIB_MAX: u64 = 512 * 1_024;
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);

/// What became of the offered requests.
#[derive(Debug, Default)]
struct Burst {
    offered: u64,
    /// Requests that were not sent, because too many had no answer yet.
    withheld: u64,
    /// Responses with 503 or 429 and `Retry-After`.
    shed: u64,
    /// Connections that were refused or closed.
    closed: u64,
    /// Requests whose answer was late or missing.
    late: u64,
    /// Latencies of the admitted requests.
    admitted: Vec<Duration>,
    /// Latencies of the redirects.
    redirected: Vec<Duration>,
    /// Redirects without a click id.
    without_click: u64,
    /// Taps that were not redirected.
    taps_lost: u64,
}

/// A request of a burst, and what became of it.
enum Sent {
    Event(LoadRequest, Answer, Duration),
    Tap(Answer, Duration),
}

/// An instance under overload.
struct Scene {
    instance: Instance,
    /// One per node.
    clients: Vec<Arc<RawClient>>,
    ledger: Ledger,
    totals: Totals,
    /// Number of the next request.
    next: u64,
    /// Highest memory so far, in KiB.
    peak_kib: u64,
    sampled_at: Instant,
}

impl Scene {
    /// Prints a burst. Checks that it was an overload, and that answers came in time.
    fn check_burst(&mut self, burst: &mut Burst) {
        println!(
            "offered {}, {} of them not sent; admitted {} ({}); shed {}, closed {}, late {}; \
             redirected {} taps ({}), {} of them without a click id; lost {} taps",
            burst.offered,
            burst.withheld,
            burst.admitted.len(),
            percentiles(&mut burst.admitted),
            burst.shed,
            burst.closed,
            burst.late,
            burst.redirected.len(),
            percentiles(&mut burst.redirected),
            burst.without_click,
            burst.taps_lost,
        );
        let totals = &mut self.totals;
        let slowest = percentile(&burst.admitted, 99);
        totals.admitted_p99 = totals.admitted_p99.max(Some(slowest));
        if slowest > ADMITTED_P99_MAX {
            totals.violated(format!(
                "the 99th percentile of the admitted is {slowest:.0?}"
            ));
        }
        let sent = burst.offered - burst.withheld;
        if burst.late * 1_000 > sent * LATE_PER_MILLE_MAX {
            totals.violated(format!(
                "{} of {sent} requests got no answer in time",
                burst.late
            ));
        }
        if burst.withheld + burst.shed + burst.closed == 0 {
            totals.violated("the server took everything: no overload");
        }
    }

    /// Samples the memory of the nodes now and then.
    fn sample_memory(&mut self) {
        if self.sampled_at.elapsed() >= SAMPLE_INTERVAL {
            self.sampled_at = Instant::now();
            self.peak_kib = self.peak_kib.max(self.resident_kib());
        }
    }

    /// Returns the memory of all nodes.
    fn resident_kib(&self) -> u64 {
        let nodes = (0..self.instance.nodes()).map(|node| self.instance.node(node));
        nodes.map(ServerProcess::resident_kib).sum()
    }

    /// Returns a client of each node in turn.
    fn client(&self, number: u64) -> Arc<RawClient> {
        let node = usize::try_from(number).unwrap_or(0) % self.clients.len();
        self.clients[node].clone()
    }

    /// Builds the next request.
    fn request(&mut self) -> (LoadRequest, String) {
        self.next += 1;
        let id = format!("burst-{}", self.next);
        let request = WebEvent::purchase(&id, 1_000_000).request(&self.instance.site, 0, now_ms());
        let raw = request.to_http(&self.instance.site);
        (request, raw)
    }

    /// Measures the rate that the server takes in a closed loop, per second.
    async fn measure(&mut self) -> u32 {
        let mut clients = JoinSet::new();
        let of_client = |scene: &mut Self| -> Vec<_> {
            (0..MEASURED_REQUESTS).map(|_| scene.request()).collect()
        };
        let prepared: Vec<_> = (0..MEASURING_CLIENTS).map(|_| of_client(self)).collect();
        let begun = Instant::now();
        for (number, requests) in (0..).zip(prepared) {
            clients.spawn(measuring_client(self.client(number), requests, begun));
        }
        let mut count = 0;
        while let Some(ended) = clients.join_next().await {
            for (request, outcome) in ended.expect("a client does not panic") {
                count += u32::from(self.ledger.record(request, outcome));
            }
        }
        (count * 1_000 / u32::try_from(begun.elapsed().as_millis()).unwrap_or(u32::MAX)).max(1)
    }

    /// Offers requests at this rate, each on its own connection.
    async fn burst(&mut self, per_second: u32, time: Duration) -> Burst {
        let (mut burst, mut running) = (Burst::default(), JoinSet::new());
        let (begun, interval) = (Instant::now(), Duration::from_secs(1) / per_second);
        let most = outstanding_max(per_second / FACTOR);
        while begun.elapsed() < time {
            let due = begun.elapsed().as_nanos() / interval.as_nanos();
            while u128::from(burst.offered) < due {
                burst.offered += 1;
                if running.len() >= most {
                    burst.withheld += 1;
                    continue;
                }
                let client = self.client(burst.offered);
                let tap = tap_request(&self.instance.site);
                let is_tap = burst.offered.is_multiple_of(TAP_SHARE);
                let event = (!is_tap).then(|| self.request());
                running.spawn(async move {
                    let begun = Instant::now();
                    match event {
                        Some((request, raw)) => {
                            let answer = client.exchange(&raw).await;
                            Sent::Event(request, answer, begun.elapsed())
                        }
                        None => Sent::Tap(client.exchange(&tap).await, begun.elapsed()),
                    }
                });
            }
            while let Some(ended) = running.try_join_next() {
                self.judge(ended.expect("a request does not panic"), &mut burst);
            }
            self.sample_memory();
            tokio::time::sleep(interval.max(Duration::from_millis(1))).await;
        }
        let since = Instant::now();
        self.recover(since).await;
        while let Some(ended) = running.join_next().await {
            self.judge(ended.expect("a request does not panic"), &mut burst);
            self.sample_memory();
        }
        burst
    }

    /// Writes down what a request of the burst was told.
    fn judge(&mut self, sent: Sent, burst: &mut Burst) {
        match sent {
            Sent::Event(request, answer, time) => self.judge_event(request, answer, time, burst),
            Sent::Tap(answer, time) => self.judge_tap(answer, time, burst),
        }
    }

    fn judge_tap(&mut self, answer: Answer, time: Duration, burst: &mut Burst) {
        let click = match answer {
            Answer::Response {
                status: 302, click, ..
            } => {
                burst.redirected.push(time);
                burst.without_click += u64::from(click.is_none());
                click
            }
            Answer::Response { .. } | Answer::NotConnected | Answer::None => {
                burst.taps_lost += 1;
                None
            }
        };
        match click {
            Some(click) => {
                self.ledger.requests += 1;
                self.ledger.clicks.insert(click);
            }
            None => self.ledger.unanswered_taps += 1,
        }
    }

    fn judge_event(
        &mut self,
        request: LoadRequest,
        answer: Answer,
        time: Duration,
        burst: &mut Burst,
    ) {
        let outcome = match answer {
            Answer::Response {
                status: 200 | 202, ..
            } => {
                burst.admitted.push(time);
                burst.late += u64::from(time > ADMITTED_MAX);
                Outcome::Acknowledged
            }
            Answer::Response {
                status: 429 | 503,
                has_retry_after: true,
                ..
            } => {
                burst.shed += 1;
                Outcome::Unknown { answered: true }
            }
            Answer::NotConnected | Answer::None if time <= ADMITTED_MAX => {
                burst.closed += 1;
                Outcome::Unknown { answered: false }
            }
            Answer::NotConnected | Answer::None => {
                burst.late += 1;
                Outcome::Unknown { answered: false }
            }
            Answer::Response { status, .. } => Outcome::Wrong(format!("a burst got {status}")),
        };
        self.ledger.record(request, outcome);
    }

    /// Measures the time until an event is accepted as usual.
    async fn recover(&mut self, since: Instant) {
        match self.instance.wait_until_accepting(since).await {
            Some(time) => {
                self.totals.recovery.push(time);
                if time > USUAL_AGAIN_MAX {
                    self.totals.violated(format!("recovery took {time:?}"));
                }
            }
            None => self
                .totals
                .violated("the instance does not recover from overload"),
        }
    }
}

/// Sends requests one after the other on one connection until the measuring time is over.
async fn measuring_client(
    client: Arc<RawClient>,
    requests: Vec<(LoadRequest, String)>,
    begun: Instant,
) -> Vec<(LoadRequest, Outcome)> {
    let mut outcomes = Vec::new();
    let Ok(mut stream) = client.connect().await else {
        return outcomes;
    };
    for (request, raw) in requests {
        if begun.elapsed() > MEASURING_TIME {
            break;
        }
        let outcome = match exchange(&mut stream, &raw).await {
            Answer::Response { status: 202, .. } => Outcome::Acknowledged,
            Answer::Response {
                status: 503 | 429, ..
            } => Outcome::Unknown { answered: true },
            answer => Outcome::Wrong(format!("the closed loop got {answer:?}")),
        };
        outcomes.push((request, outcome));
    }
    outcomes
}

/// Starts clients that read an export and write a body slowly.
async fn start_slow_clients(scene: &Scene) -> (Vec<TcpStream>, JoinSet<std::io::Result<()>>) {
    let site = &scene.instance.site;
    let (export, body) = (export_request(site), long_request(site));
    let (mut readers, mut writers) = (Vec::new(), JoinSet::new());
    for number in 0..SLOW_CLIENTS {
        let client = scene.client(number);
        if let Ok(stream) = slow_reader(&client, &export).await {
            readers.push(stream);
        }
        let body = body.clone();
        writers.spawn(async move { slow_writer(&client, &body).await });
    }
    (readers, writers)
}

/// Returns how many requests may be without an answer at a time, if the server takes this many per
/// second.
fn outstanding_max(per_second: u32) -> usize {
    let taken = usize::try_from(per_second).unwrap_or(usize::MAX);
    OUTSTANDING_MAX.min(taken.saturating_mul(OUTSTANDING_SECONDS))
}

/// Opens this many idle connections to each node.
fn hold_on_each(scene: &Scene, count: u64) -> Vec<IdleConnections> {
    let nodes = (0..scene.instance.nodes()).map(|node| scene.instance.node(node));
    let open = |node: &ServerProcess| IdleConnections::open(node.base_url(), count);
    tokio::task::block_in_place(|| nodes.map(open).collect())
}

/// Returns how many idle connections the nodes keep open.
fn open_connections(idle: &mut [IdleConnections]) -> u64 {
    tokio::task::block_in_place(|| idle.iter_mut().map(IdleConnections::count).sum())
}

/// Formats the median, the 99th percentile and the maximum.
fn percentiles(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let [median, high, longest] = [50, 99, 100].map(|share| percentile(times, share));
    format!("p50 {median:.0?}, p99 {high:.0?}, max {longest:.0?}")
}

/// Returns a percentile of sorted times.
fn percentile(times: &[Duration], share: usize) -> Duration {
    let at = (times.len() * share / 100).min(times.len().saturating_sub(1));
    times.get(at).copied().unwrap_or_default()
}

/// Held during an overload: two at once would need more descriptors than a process may have.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// Offers ten times the measured rate, in half as many bursts as the episode has rounds.
pub async fn overload(engine: Engine, episode: Episode) -> Totals {
    let _alone = ONE_AT_A_TIME.lock().await;
    let allowed = allowed_descriptors();
    let nodes = nodes(engine);
    let limits = settings(&[
        ("TRIBUTARY_HTTP__HEADER_TIMEOUT_SECONDS", IDLE_TIMEOUT),
        ("TRIBUTARY_LIMITS__CONNECTIONS", CONNECTIONS),
        ("TRIBUTARY_LIMITS__CONNECTIONS_PER_ADDRESS", "0"),
    ]);
    let instance = Instance::start_with(engine, nodes, limits).await;
    let mut scene = Scene {
        clients: (0..nodes)
            .map(|node| Arc::new(RawClient::new(instance.node(node).base_url())))
            .collect(),
        instance,
        ledger: Ledger::default(),
        totals: Totals::default(),
        next: 0,
        peak_kib: 0,
        sampled_at: Instant::now(),
    };
    let rate = scene.measure().await;
    let before = scene.resident_kib();
    let wanted = IDLE_PER_ROUND * episode.rounds / nodes as u64;
    let most = allowed.saturating_sub(outstanding_max(rate) as u64 + RESERVED_DESCRIPTORS);
    let mut idle = hold_on_each(&scene, wanted.min(most));
    let held = open_connections(&mut idle);
    println!(
        "{engine:?}: {rate} requests a second in a closed loop; {before} KiB, {} KiB with {held} idle connections, \
         {wanted} wanted on each of {nodes} nodes (limit on open files: {allowed})",
        scene.resident_kib(),
    );
    for _ in 0..episode.rounds.div_ceil(2) {
        let open = open_connections(&mut idle);
        let fewest = scene.totals.idle_connections.unwrap_or(open).min(open);
        scene.totals.idle_connections = Some(fewest);
        if open < wanted.min(most) * nodes as u64 {
            let violation = format!("only {open} idle connections are open on {nodes} nodes");
            scene.totals.violated(violation);
        }
        let slow = start_slow_clients(&scene).await;
        let mut burst = scene
            .burst(rate * FACTOR, episode.load + MEASURING_TIME)
            .await;
        drop(slow);
        scene.check_burst(&mut burst);
        scene.totals.rounds += 1;
    }
    check_memory(&mut scene, before, held);
    drop(idle);
    let Scene {
        mut instance,
        ledger,
        mut totals,
        ..
    } = scene;
    check(&mut instance, ledger, &mut totals).await;
    totals
}

/// Checks that memory stayed below what the connections and the queues may take.
fn check_memory(scene: &mut Scene, before: u64, idle: u64) {
    let after = scene.resident_kib();
    let connections = idle + OUTSTANDING_MAX as u64;
    let most = before + LOAD_KIB_MAX + connections * CONNECTION_KIB_MAX;
    println!(
        "memory: {before} KiB before, at most {} KiB, {after} KiB after",
        scene.peak_kib
    );
    if scene.peak_kib > most {
        let violation = format!("memory grew from {before} to {} KiB", scene.peak_kib);
        scene.totals.violated(violation);
    }
}
