//! The load: some connections that are kept open, driven by one thread.
//!
//! It shares the machine with what it measures, so it is as cheap as it can be: requests are prepared bytes, an
//! answer is looked through for its status and its end, and nothing is woken that has nothing to do.

use crate::pace::{Latencies, LoadPace, per_second};
use crate::response;
use anyhow::{Context as _, bail};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use tributary_domain::runtime::Runtime;
use tributary_server::system::runtime;

/// How long nothing at all may come back before a run is given up.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of an answer that are kept: heads and bodies here are far shorter.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// What is sent. Every request has a number, and the numbers never go back.
pub(crate) trait Requests {
    /// The bytes of a request, at this time in milliseconds.
    fn request_bytes(&mut self, number: u64, millis: i64) -> &[u8];

    /// The status that it must be answered with.
    fn expected_status(&self, number: u64) -> u16;
}

/// Where a run ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StopCondition {
    /// Nothing is sent after this time.
    After(Duration),
    /// So many are sent.
    Sent(u64),
}

/// What a run came to. Every answer was the expected one: anything else ends the run with an error.
#[derive(Debug)]
pub(crate) struct LoadResult {
    pub(crate) answered: u64,
    pub(crate) per_second: u64,
    pub(crate) times: Latencies,
}

/// A server under load.
#[derive(Debug)]
pub(crate) struct Load<R> {
    pub(crate) address: SocketAddr,
    pub(crate) requests: R,
    pub(crate) connections: usize,
    /// The number of the next request. It never goes back: every request has ids of its own.
    pub(crate) next: u64,
}

struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
    /// The request that is under way: when it was due, and the status that it must be answered with.
    in_flight: Option<(Instant, u16)>,
}

impl<R: Requests> Load<R> {
    /// Sends until the end, and waits for what is under way.
    pub(crate) fn run(&mut self, pace: LoadPace, end: StopCondition) -> anyhow::Result<LoadResult> {
        let mut run = Run::open(self, pace, end)?;
        while run.step()? {}
        let took = run.begun.elapsed();
        let answered = run.times.len() as u64;
        Ok(LoadResult {
            answered,
            per_second: per_second(answered, took),
            times: Latencies::of(run.times),
        })
    }
}

struct Run<'a, R> {
    load: &'a mut Load<R>,
    pace: LoadPace,
    end: StopCondition,
    begun: Instant,
    clock: Runtime,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    /// Connections without a request under way. Whose turn was longest ago is first: a server closes a connection on
    /// which nothing comes.
    idle: VecDeque<usize>,
    events: Vec<epoll::Event>,
    sent: u64,
    times: Vec<Duration>,
}

impl<'a, R: Requests> Run<'a, R> {
    fn open(load: &'a mut Load<R>, pace: LoadPace, end: StopCondition) -> anyhow::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut connections = Vec::new();
        for number in 0..load.connections {
            let stream = TcpStream::connect(load.address).context("the server does not answer")?;
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
            connections,
            load,
            pace,
            end,
            begun: Instant::now(),
            clock: runtime(),
            epoll,
            sent: 0,
            times: Vec::new(),
        })
    }

    /// Sends what is due, takes what has come; false when all is done.
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
            bail!("nothing came back for {RESPONSE_TIMEOUT:?}");
        }
        while let Some(event) = self.events.pop() {
            let number = usize::try_from(event.data.u64())?;
            self.receive(number)?;
        }
        Ok(true)
    }

    fn is_over(&self) -> bool {
        match self.end {
            StopCondition::After(time) => self.begun.elapsed() >= time,
            StopCondition::Sent(count) => self.sent >= count,
        }
    }

    /// Sends as long as something is due and a connection is free; gives how long until something else is due.
    fn send_due(&mut self) -> anyhow::Result<Option<Duration>> {
        while !self.is_over() {
            let Some(number) = self.idle.front().copied() else {
                return Ok(None);
            };
            let (due, now) = (self.pace.due(self.sent), self.begun.elapsed());
            if let Some(early) = due.checked_sub(now).filter(|early| !early.is_zero()) {
                return Ok(Some(early));
            }
            self.idle.pop_front();
            let due = match self.pace {
                LoadPace::FlatOut => Instant::now(),
                LoadPace::PerSecond(_) => self.begun + due,
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
        // A few hundred bytes into an empty buffer: they go at once or the connection is broken.
        let written = (&connection.stream).write(bytes)?;
        if written != bytes.len() {
            bail!("a request was taken in part");
        }
        self.load.next += 1;
        self.sent += 1;
        Ok(())
    }

    fn receive(&mut self, number: usize) -> anyhow::Result<()> {
        let connection = &mut self.connections[number];
        let mut bytes = [0; ANSWER_BYTES_MAX];
        let length = match (&connection.stream).read(&mut bytes) {
            Ok(0) => bail!("the server closed a connection"),
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        connection.received.extend_from_slice(&bytes[..length]);
        let Some(answer) = response::read(&connection.received) else {
            return Ok(());
        };
        let (due, expected) = connection
            .in_flight
            .take()
            .context("an answer to nothing")?;
        if answer.status != expected || answer.length != connection.received.len() {
            let text = String::from_utf8_lossy(&connection.received);
            bail!("not answered with {expected}: {text}");
        }
        connection.received.clear();
        self.times.push(due.elapsed());
        self.idle.push_back(number);
        Ok(())
    }
}
