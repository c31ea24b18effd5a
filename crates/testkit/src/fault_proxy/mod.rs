//! A TCP proxy that delays, stalls and cuts connections, and counts what it did.
//!
//! It sits between a client and a target: between a server and its database, or between an SDK and
//! a server. A test changes its behaviour at run time. The most useful cut is the one between a
//! commit and its answer: the target has done the work, and the client cannot know.
//!
//! Random choices come from a seed. The order of connections and reads still depends on timing, so a
//! seed does not reproduce a run byte for byte.

mod connection;
mod matching;

use matching::Armed;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha12Rng;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

/// Pause after a failed `accept`, so that a full table of descriptors does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A direction of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowDirection {
    /// From the client to the target.
    ToTarget,
    /// From the target to the client.
    ToClient,
}

impl FlowDirection {
    fn opposite(self) -> Self {
        match self {
            Self::ToTarget => Self::ToClient,
            Self::ToClient => Self::ToTarget,
        }
    }
}

/// How bytes flow in one direction. The default forwards them unchanged and at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flow {
    /// Delay of each read.
    pub delay: Duration,
    /// Longest random time added to the delay.
    pub jitter: Duration,
    /// Rate; 0 is unlimited.
    pub bytes_per_second: u32,
    /// Maximum number of bytes written at once; 0 is unlimited. With 1, each byte is a packet.
    pub piece_bytes: usize,
    /// Whether bytes are held back. Connections stay open.
    pub is_stalled: bool,
}

/// Where a connection is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CutPoint {
    /// After this number of bytes since the cut was armed.
    Byte(u64),
    /// After a random number of bytes below this bound, drawn for each connection.
    RandomByte(u64),
    /// At these bytes.
    Pattern(Vec<u8>),
}

/// When a connection is cut, relative to the [`CutPoint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutMoment {
    /// Before the pattern is forwarded: the peer never sees it.
    Before,
    /// After the pattern was forwarded: the peer may or may not act on it.
    After,
    /// When the peer answers: it has acted, and its answer is dropped.
    OnAnswer,
}

/// How a connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutKind {
    /// Both sides get a reset.
    Reset,
    /// Both sides get the end of the stream.
    Close,
    /// The receiver of the cut direction gets the end of the stream. The other direction goes on.
    HalfClose,
}

/// Cuts connections at a point in their stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// Direction in which the point is looked for.
    pub direction: FlowDirection,
    /// Where.
    pub point: CutPoint,
    /// When.
    pub moment: CutMoment,
    /// How.
    pub kind: CutKind,
    /// Cuts one of this many matches, at random; 1 cuts every one.
    pub one_in: u32,
    /// Maximum number of cuts.
    pub times: u32,
}

impl Cut {
    /// Drops the answer to the next `times` occurrences of a pattern sent by the client, and resets
    /// their connections.
    pub fn answers_to(pattern: &[u8], times: u32) -> Self {
        Self {
            direction: FlowDirection::ToTarget,
            point: CutPoint::Pattern(pattern.to_vec()),
            moment: CutMoment::OnAnswer,
            kind: CutKind::Reset,
            one_in: 1,
            times,
        }
    }
}

/// What the proxy did so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FaultCounts {
    /// Connections carried to the target.
    pub connections: u64,
    /// Connections reset at once because the proxy refuses them.
    pub refused: u64,
    /// Connections reset because the target did not accept them.
    pub unreachable: u64,
    /// Bytes forwarded to the target.
    pub to_target_bytes: u64,
    /// Bytes forwarded to the client.
    pub to_client_bytes: u64,
    /// Writes, in both directions.
    pub pieces: u64,
    /// Reads that a stall held back.
    pub stalls: u64,
    /// Connections cut at an armed [`Cut`].
    pub cuts: u64,
    /// Connections reset by [`FaultProxy::reset_open`].
    pub resets: u64,
}

#[derive(Default)]
struct Counters {
    connections: AtomicU64,
    refused: AtomicU64,
    unreachable: AtomicU64,
    to_target_bytes: AtomicU64,
    to_client_bytes: AtomicU64,
    pieces: AtomicU64,
    stalls: AtomicU64,
    cuts: AtomicU64,
    resets: AtomicU64,
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

struct Shared {
    target: Mutex<SocketAddr>,
    is_refusing: AtomicBool,
    to_target: watch::Sender<Flow>,
    to_client: watch::Sender<Flow>,
    armed: Mutex<Armed>,
    /// Resets open connections, by number.
    open: Mutex<BTreeMap<u64, oneshot::Sender<()>>>,
    counters: Counters,
    rng: Mutex<ChaCha12Rng>,
}

impl Shared {
    fn flow(&self, direction: FlowDirection) -> &watch::Sender<Flow> {
        match direction {
            FlowDirection::ToTarget => &self.to_target,
            FlowDirection::ToClient => &self.to_client,
        }
    }

    /// Returns a random number below the bound; 0 if the bound is 0.
    fn below(&self, bound: u64) -> u64 {
        locked(&self.rng)
            .next_u64()
            .checked_rem(bound)
            .unwrap_or_default()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A TCP proxy on a free port. Dropping it closes all connections.
pub struct FaultProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl FaultProxy {
    /// Starts a proxy that forwards everything unchanged.
    pub async fn start(target: SocketAddr, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("local address");
        let shared = Arc::new(Shared {
            target: Mutex::new(target),
            is_refusing: AtomicBool::new(false),
            to_target: watch::Sender::default(),
            to_client: watch::Sender::default(),
            armed: Mutex::default(),
            open: Mutex::default(),
            counters: Counters::default(),
            rng: Mutex::new(ChaCha12Rng::seed_from_u64(seed)),
        });
        let accepting = tokio::spawn(accept(listener, shared.clone()));
        Self {
            address,
            shared,
            accepting,
        }
    }

    /// Returns the address that clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends new connections to another target. Open connections stay.
    pub fn retarget(&self, target: SocketAddr) {
        *locked(&self.shared.target) = target;
    }

    /// Resets new connections at once, or accepts them again.
    pub fn refuse(&self, is_refusing: bool) {
        self.shared
            .is_refusing
            .store(is_refusing, Ordering::Relaxed);
    }

    /// Changes how bytes flow in one direction, also on open connections.
    pub fn set_flow(&self, direction: FlowDirection, flow: Flow) {
        self.shared.flow(direction).send_replace(flow);
    }

    /// Arms a cut, which replaces an earlier one. It also applies to open connections.
    pub fn arm(&self, cut: Cut) {
        locked(&self.shared.armed).replace(Some(cut));
    }

    /// Disarms the cut.
    pub fn disarm(&self) {
        locked(&self.shared.armed).replace(None);
    }

    /// Resets one of this many open connections, at random; 1 resets all. Returns their number.
    pub fn reset_open(&self, one_in: u64) -> u64 {
        let mut open = locked(&self.shared.open);
        let numbers: Vec<u64> = open.keys().copied().collect();
        let chosen = numbers
            .into_iter()
            .filter(|_| self.shared.below(one_in) == 0);
        let resets = chosen.filter_map(|number| open.remove(&number)?.send(()).ok());
        let count = resets.map(|()| 1).sum();
        add(&self.shared.counters.resets, count);
        count
    }

    /// Forwards everything unchanged again. Open connections stay, and so does the target.
    pub fn heal(&self) {
        self.refuse(false);
        self.disarm();
        for direction in [FlowDirection::ToTarget, FlowDirection::ToClient] {
            self.set_flow(direction, Flow::default());
        }
    }

    /// Returns what the proxy did so far.
    pub fn counts(&self) -> FaultCounts {
        let counters = &self.shared.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FaultCounts {
            connections: read(&counters.connections),
            refused: read(&counters.refused),
            unreachable: read(&counters.unreachable),
            to_target_bytes: read(&counters.to_target_bytes),
            to_client_bytes: read(&counters.to_client_bytes),
            pieces: read(&counters.pieces),
            stalls: read(&counters.stalls),
            cuts: read(&counters.cuts),
            resets: read(&counters.resets),
        }
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Dropped with this task, which ends the connections.
    let mut connections = JoinSet::new();
    for number in 0.. {
        let near = loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((near, _)) => break near,
                    Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                },
                Some(_ended) = connections.join_next() => {}
            }
        };
        if shared.is_refusing.load(Ordering::Relaxed) {
            let _best_effort = near.set_zero_linger();
            add(&shared.counters.refused, 1);
            continue;
        }
        connections.spawn(connect(shared.clone(), number, near));
    }
}

async fn connect(shared: Arc<Shared>, number: u64, near: TcpStream) {
    let target = *locked(&shared.target);
    let Ok(far) = TcpStream::connect(target).await else {
        let _best_effort = near.set_zero_linger();
        add(&shared.counters.unreachable, 1);
        return;
    };
    add(&shared.counters.connections, 1);
    let (reset, is_reset) = oneshot::channel();
    locked(&shared.open).insert(number, reset);
    connection::carry(&shared, near, far, is_reset).await;
    locked(&shared.open).remove(&number);
}
