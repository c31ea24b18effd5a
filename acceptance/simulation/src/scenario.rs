//! A scenario: the load and the faults of one run, as data that can be made smaller.

use crate::disk::DiskFault;
use clap::ValueEnum;
use std::collections::BTreeSet;

/// A deliberate error that the checks must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Weakening {
    /// No error.
    #[default]
    None,
    /// The disk ignores syncs of the WAL.
    IgnoreLogSyncs,
    /// The writer answers before it commits.
    AnswerBeforeCommit,
    /// A request to a network carries another deduplication id when it is sent again.
    ChangeDedupIds,
}

impl Weakening {
    pub(crate) fn ignores_log_syncs(self) -> bool {
        self == Self::IgnoreLogSyncs
    }
}

/// One run. Everything else follows from the seed.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Number of clients that work at the same time.
    pub clients: usize,
    /// Probability, in percent, that an unsynced sector reaches the disk.
    pub leak_percent: u64,
    /// WAL pages that trigger a checkpoint.
    pub log_pages_max: u32,
    /// What happens. The number stays with an element when others are removed.
    pub elements: Vec<(u32, Element)>,
}

impl Scenario {
    /// Keeps only the elements with these numbers.
    #[must_use]
    pub fn only(&self, kept: &BTreeSet<u32>) -> Self {
        let elements = self.elements.iter();
        Self {
            elements: elements
                .filter(|(number, _)| kept.contains(number))
                .cloned()
                .collect(),
            ..self.clone()
        }
    }
}

impl Scenario {
    /// Replaces the ends of all processes by this end of the first one.
    #[must_use]
    pub fn with_end(&self, end: End) -> Self {
        let is_end = |element: &Element| matches!(element, Element::End(_));
        let others = self.elements.iter().filter(|(_, one)| !is_end(one));
        let number = self.elements.iter().map(|(number, _)| number + 1).max();
        let end = (number.unwrap_or(0), Element::End(end));
        Self {
            elements: others.cloned().chain([end]).collect(),
            ..self.clone()
        }
    }
}

/// A part of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Element {
    /// A client sends a request after its earlier ones.
    Request {
        /// The client.
        client: usize,
        /// The request.
        request: Request,
    },
    /// Calls on the disk fail.
    Disk(DiskFault),
    /// A request to a network fails.
    Network(NetworkFault),
    /// The process ends. The n-th of these elements ends the n-th process.
    End(End),
    /// The disk stalls before a step of the writer.
    Stall {
        /// Number of the step, counted from 1 over the whole run.
        step: u64,
        /// Duration.
        millis: u64,
    },
}

/// How a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndKind {
    /// The process is killed; the operating system keeps what was written.
    Kill,
    /// The power fails; only durable bytes remain.
    PowerCut,
    /// The process stops as after SIGTERM.
    Stop,
}

/// The end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// How it ends.
    pub kind: EndKind,
    /// Number of the point in the process's life, counted from 1.
    pub point: u64,
}

/// A fault of a request to a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkFault {
    /// Number of the request, counted from 1 over the whole run.
    pub request: u64,
    /// The fault.
    pub kind: NetworkFaultKind,
}

/// What happens to a request to a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkFaultKind {
    /// No connection.
    NotSent,
    /// The request is lost after it was sent.
    RequestLost,
    /// The network processes the request, but its answer is lost.
    AnswerLost,
    /// The network answers with this status and does not process the request.
    Status(u16),
    /// The network receives the request twice.
    Twice,
    /// The network receives the request after the sender gave up.
    Late {
        /// Delay after the sender's time limit.
        millis: u64,
    },
    /// The answer takes this long.
    Slow {
        /// Delay.
        millis: u64,
    },
}

/// The environment of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keys {
    /// Live keys.
    Live,
    /// Test keys.
    Test,
}

/// Type of a web event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebKind {
    /// A first payment.
    Purchase,
    /// A later payment.
    Renewal,
    /// A refund.
    Refund,
    /// A registration.
    SignUp,
}

impl WebKind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Purchase => "purchase",
            Self::Renewal => "renewal",
            Self::Refund => "refund",
            Self::SignUp => "sign_up",
        }
    }
}

/// Type of a billing notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BillingKind {
    /// The first payment of a subscription.
    Initial,
    /// A later payment.
    Renewal,
    /// A refund of the first payment.
    Refund,
}

/// A request of a client, or something that the client does instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Taps a link of one of the networks.
    Tap {
        /// Index of the network.
        network: usize,
    },
    /// Configures a device.
    Configure {
        /// The device.
        device: u64,
        /// The tap that led to the store.
        tap: Option<u32>,
        /// The SDK key.
        keys: Keys,
    },
    /// Sends a batch of SDK events.
    SdkEvents {
        /// The device.
        device: u64,
        /// Number of events.
        count: u64,
        /// The SDK key.
        keys: Keys,
    },
    /// Sends a web event.
    Web {
        /// Its type.
        kind: WebKind,
        /// Number of the request whose event id this one uses: its own, or another one's with
        /// other content.
        id_of: u32,
        /// The payment that it refers to.
        parent: Option<u32>,
        /// Its amount.
        cents: u64,
        /// Index of its click's network.
        network: usize,
        /// The device.
        device: u64,
        /// The API key.
        keys: Keys,
    },
    /// A billing provider sends a notification.
    Billing {
        /// Its type.
        kind: BillingKind,
        /// The subscription.
        subscription: u64,
        /// The payment within the subscription.
        payment: u64,
        /// Its amount.
        cents: u64,
        /// The environment.
        keys: Keys,
    },
    /// Sends a purchase of a device of its own, and then erases the device.
    Erase,
    /// Reads a report and the event log.
    Report,
    /// Keeps a snapshot of the database open, as a long report does.
    HoldSnapshot {
        /// Duration.
        millis: u64,
    },
    /// The server's clock jumps by this much.
    JumpClock {
        /// Milliseconds, negative for backwards.
        millis: i64,
    },
    /// Waits.
    Wait {
        /// Duration.
        millis: u64,
    },
}
