//! The load generator: keep-alive connections driven by one thread.
//!
//! The generator shares the machine with the server under test, so it has to be cheap: requests are
//! prepared bytes, responses are only scanned for status and length, and idle connections are not
//! polled.

use crate::pace::{Latencies, LoadPace, per_second};
use crate::response;
use anyhow::{Context as _, bail};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use tributary_domain::runtime::Runtime;
use tributary_server::system::runtime;

/// Time without any response after which a run is aborted.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Size of the receive buffer for each response. Responses in these benchmarks are far shorter.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// A source of numbered requests. Numbers only increase.
pub(crate) trait Requests {
    /// Returns the bytes of a request sent at `millis`.
    fn request_bytes(&mut self, number: u64, millis: i64) -> &[u8];

    /// Returns the expected response status.
    fn expected_status(&self, number: u64) -> u16;

    /// Builds `count` requests from number `first`, if they cost more to build than to send.
    fn prepare(&mut self, _first: u64, _count: u64) {}
}

/// When a run stops sending.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StopCondition {
    /// After this duration.
    After(Duration),
    /// After this many requests.
    Sent(u64),
}

/// Result of a run. An unexpected response ends the run with an error instead.
#[derive(Debug)]
pub(crate) struct LoadResult {
    pub(crate) answered: u64,
    pub(crate) per_second: u64,
    pub(crate) times: Latencies,
    /// CPU time of the load generator.
    pub(crate) processor_time: Duration,
}

/// A load on one server.
#[derive(Debug)]
pub(crate) struct Load<R> {
    pub(crate) address: SocketAddr,
    pub(crate) requests: R,
    pub(crate) connections: usize,
    /// Number of the next request. It never decreases, because ids are derived from it.
    pub(crate) next: u64,
}

struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    /// The request in flight: its due time and the expected status.
    in_flight: Option<(Instant, u16)>,
}

impl<R: Requests> Load<R> {
    /// Builds the next `count` requests, if they cost more to build than to send.
    pub(crate) fn prepare(&mut self, count: u64) {
        self.requests.prepare(self.next, count);
    }

    /// Sends until the stop condition holds, then waits for the requests in flight.
    pub(crate) fn run(&mut self, pace: LoadPace, end: StopCondition) -> anyhow::Result<LoadResult> {
        let mut run = Run::open(self, pace, end)?;
        let before = thread_time();
        while run.step()? {}
        let elapsed = run.started.elapsed();
        let answered = run.times.len() as u64;
        Ok(LoadResult {
            answered,
            per_second: per_second(answered, elapsed),
            processor_time: thread_time().saturating_sub(before),
            times: Latencies::of(run.times),
        })
    }
}

/// Returns the CPU time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

struct Run<'a, R> {
    load: &'a mut Load<R>,
    pace: LoadPace,
    end: StopCondition,
    started: Instant,
    clock: Runtime,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    /// Connections without a request in flight, least recently used first, so that none is idle
    /// long enough for the server to close it.
    idle: VecDeque<usize>,
    events: Vec<epoll::Event>,
    /// Shared by all connections, because clearing a buffer per response would cost time.
    buffer: Vec<u8>,
    sent: u64,
    times: Vec<Duration>,
}

impl<'a, R: Requests> Run<'a, R> {
    fn open(load: &'a mut Load<R>, pace: LoadPace, end: StopCondition) -> anyhow::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut connections = Vec::new();
        for number in 0..load.connections {
            let stream =
                TcpStream::connect(load.address).context("cannot connect to the server")?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let data = epoll::EventData::new_u64(number as u64);
            epoll::add(&epoll, &stream, data, epoll::EventFlags::IN)?;
            connections.push(Connection {
                stream,
                received: Vec::with_capacity(ANSWER_BYTES_MAX),
                in_flight: None,
            });
        }
        Ok(Self {
            idle: (0..connections.len()).collect(),
            events: Vec::with_capacity(connections.len()),
            buffer: vec![0; ANSWER_BYTES_MAX],
            connections,
            load,
            pace,
            end,
            started: Instant::now(),
            clock: runtime(),
            epoll,
            sent: 0,
            times: Vec::new(),
        })
    }

    /// Sends due requests and reads responses. Returns false when the run is complete.
    fn step(&mut self) -> anyhow::Result<bool> {
        let wait = self.send_due()?;
        if self.is_over() && self.idle.len() == self.connections.len() {
            return Ok(false);
        }
        let timeout = wait.unwrap_or(RESPONSE_TIMEOUT);
        let timespec = Timespec::try_from(timeout)?;
        let buffer = spare_capacity(&mut self.events);
        epoll::wait(&self.epoll, buffer, Some(&timespec))?;
        if self.events.is_empty() && wait.is_none() {
            bail!("no response for {RESPONSE_TIMEOUT:?}");
        }
        while let Some(event) = self.events.pop() {
            let number = usize::try_from(event.data.u64())?;
            self.receive(number)?;
        }
        Ok(true)
    }

    fn is_over(&self) -> bool {
        match self.end {
            StopCondition::After(time) => self.started.elapsed() >= time,
            StopCondition::Sent(count) => self.sent >= count,
        }
    }

    /// Sends due requests while connections are idle. Returns the time until the next request is
    /// due.
    fn send_due(&mut self) -> anyhow::Result<Option<Duration>> {
        while !self.is_over() {
            let Some(number) = self.idle.front().copied() else {
                return Ok(None);
            };
            let (due, now) = (self.pace.due(self.sent), self.started.elapsed());
            if let Some(early) = due.checked_sub(now).filter(|early| !early.is_zero()) {
                return Ok(Some(early));
            }
            self.idle.pop_front();
            let due = match self.pace {
                LoadPace::FlatOut => Instant::now(),
                LoadPace::PerSecond(_) => self.started + due,
            };
            self.send(number, due)?;
        }
        Ok(None)
    }

    fn send(&mut self, number: usize, due: Instant) -> anyhow::Result<()> {
        let connection = &mut self.connections[number];
        let expected = self.load.requests.expected_status(self.load.next);
        connection.in_flight = Some((due, expected));
        let now = self.clock.now().as_millis();
        let bytes = self.load.requests.request_bytes(self.load.next, now);
        // A few hundred bytes fit into the empty socket buffer, so a partial write means a broken
        // connection.
        let written = (&connection.stream).write(bytes)?;
        if written != bytes.len() {
            bail!("partial write of a request");
        }
        self.load.next += 1;
        self.sent += 1;
        Ok(())
    }

    fn receive(&mut self, number: usize) -> anyhow::Result<()> {
        let connection = &mut self.connections[number];
        let length = match (&connection.stream).read(&mut self.buffer) {
            Ok(0) => bail!("the server closed a connection"),
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        connection
            .received
            .extend_from_slice(&self.buffer[..length]);
        let Some(response) = response::read(&connection.received) else {
            return Ok(());
        };
        let (due, expected) = connection
            .in_flight
            .take()
            .context("response without a request")?;
        if response.status != expected || response.length != connection.received.len() {
            let text = String::from_utf8_lossy(&connection.received);
            bail!("expected status {expected}, got: {text}");
        }
        connection.received.clear();
        self.times.push(due.elapsed());
        self.idle.push_back(number);
        Ok(())
    }
}
