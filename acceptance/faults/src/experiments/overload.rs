//! Ten times the rate that the server takes, beside thousands of idle connections, slow readers and
//! slow writers. What is admitted is answered in time, the rest is refused, memory stays bounded, and
//! the server recovers at once.

use super::Episode;
use crate::account::Totals;
use crate::check::check;
use crate::instance::{Instance, settings};
use crate::load::Ledger;
use crate::raw_http::{
    Answer, RawClient, allowed_descriptors, exchange, export_request, hold_idle, long_request,
    slow_reader, slow_writer, tap_request,
};
use crate::requests::{LoadRequest, Outcome, WebEvent, now_ms};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tributary_testkit::Engine;

/// Idle connections per round of an episode: 2,000 in a short one and 20,000 in a long one.
const IDLE_PER_ROUND: u64 = 2_000;
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
/// Requests without an answer at a time. Beyond it, the clients would run out of descriptors.
const OUTSTANDING_MAX: usize = 10_000;
/// Seconds of work that may be without an answer, so that a slow machine is not asked for the
/// impossible within the request timeout.
const OUTSTANDING_SECONDS: usize = 5;
/// Descriptors for everything else, including an experiment with the other engine.
const RESERVED_DESCRIPTORS: u64 = 1_000;
/// Limit of late and missing answers, per thousand sent requests. The kernel completes connections that
/// do not fit into the server's backlog, and drops what is sent on them.
const LATE_PER_MILLE_MAX: u64 = 100;
/// One of so many requests is a tap.
const TAP_SHARE: u64 = 10;
/// Connections that read slowly, and as many that write slowly.
const SLOW_CLIENTS: usize = 20;
/// Longest time for an admitted request: the server's request timeout of 30 seconds, and a moment to
/// notice it on a machine without idle time.
const ADMITTED_MAX: Duration = Duration::from_secs(33);
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
    client: Arc<RawClient>,
    ledger: Ledger,
    totals: Totals,
    /// Number of the next request.
    next: u64,
    /// Highest memory so far, in KiB.
    peak_kib: u64,
    sampled_at: Instant,
}

impl Scene {
    /// Samples the memory of the server now and then.
    fn sample_memory(&mut self) {
        if self.sampled_at.elapsed() >= SAMPLE_INTERVAL {
            self.sampled_at = Instant::now();
            self.peak_kib = self.peak_kib.max(self.instance.node(0).resident_kib());
        }
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
        for requests in prepared {
            clients.spawn(measuring_client(self.client.clone(), requests, begun));
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
        let taken = usize::try_from(per_second / FACTOR).unwrap_or(usize::MAX);
        let most = OUTSTANDING_MAX.min(taken.saturating_mul(OUTSTANDING_SECONDS));
        while begun.elapsed() < time {
            let due = begun.elapsed().as_nanos() / interval.as_nanos();
            while u128::from(burst.offered) < due {
                burst.offered += 1;
                if running.len() >= most {
                    burst.withheld += 1;
                    continue;
                }
                let client = self.client.clone();
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
    for _ in 0..SLOW_CLIENTS {
        if let Ok(stream) = slow_reader(&scene.client, &export).await {
            readers.push(stream);
        }
        let (client, body) = (scene.client.clone(), body.clone());
        writers.spawn(async move { slow_writer(&client, &body).await });
    }
    (readers, writers)
}

/// Formats the median, the 99th percentile and the maximum.
fn percentiles(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at =
        |share: usize| times.get((times.len() * share / 100).min(times.len().saturating_sub(1)));
    format!(
        "p50 {:.0?}, p99 {:.0?}, max {:.0?}",
        at(50),
        at(99),
        times.last()
    )
}

/// Held during an overload: two at once would need more descriptors than a process may have.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// Offers ten times the measured rate, in half as many bursts as the episode has rounds.
pub async fn overload(engine: Engine, episode: Episode) -> Totals {
    let _alone = ONE_AT_A_TIME.lock().await;
    let allowed = allowed_descriptors();
    let wanted = IDLE_PER_ROUND * episode.rounds;
    let most = allowed.saturating_sub(OUTSTANDING_MAX as u64 + RESERVED_DESCRIPTORS);
    let limits = settings(&[
        ("TRIBUTARY_LIMITS__CONNECTIONS", CONNECTIONS),
        ("TRIBUTARY_LIMITS__CONNECTIONS_PER_ADDRESS", "0"),
    ]);
    let instance = Instance::start_with(engine, 1, limits).await;
    let mut scene = Scene {
        client: Arc::new(RawClient::new(&instance.addresses.next())),
        instance,
        ledger: Ledger::default(),
        totals: Totals::default(),
        next: 0,
        peak_kib: 0,
        sampled_at: Instant::now(),
    };
    let rate = scene.measure().await;
    let before = scene.instance.node(0).resident_kib();
    let idle = hold_idle(&scene.client, wanted.min(most)).await;
    let with_idle = scene.instance.node(0).resident_kib();
    println!(
        "{engine:?}: {rate} requests a second in a closed loop; {before} KiB, {with_idle} KiB with {} idle \
         connections of {wanted} (limit on open files: {allowed})",
        idle.len(),
    );
    for _ in 0..episode.rounds.div_ceil(2) {
        let slow = start_slow_clients(&scene).await;
        let mut burst = scene
            .burst(rate * FACTOR, episode.load + MEASURING_TIME)
            .await;
        println!(
            "{engine:?}: offered {}, {} of them not sent; admitted {} ({}); shed {}, closed {}, \
             late {}; redirected {} taps ({}), {} of them without a click id; lost {} taps",
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
        drop(slow);
        let sent = burst.offered - burst.withheld;
        if burst.late * 1_000 > sent * LATE_PER_MILLE_MAX {
            let violation = format!("{} of {sent} requests got no answer in time", burst.late);
            scene.totals.violated(violation);
        }
        if burst.withheld + burst.shed + burst.closed == 0 {
            scene
                .totals
                .violated("the server took everything: no overload");
        }
        scene.totals.rounds += 1;
    }
    check_memory(&mut scene, before, idle.len() as u64);
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
    let after = scene.instance.node(0).resident_kib();
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
