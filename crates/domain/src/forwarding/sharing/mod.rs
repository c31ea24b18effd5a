//! Sharing a large queue among nodes.
//!
//! Usually one node leases a queue as a whole. If the backlog is large, the node offers to share it.
//! When another node asks for a share, the holder stops after its round, and from then on nodes
//! lease parts of the queue. The id of a delivery says which part it belongs to. When the backlog is
//! small again, no further part is leased, and once all parts are released, the queue is whole.

use super::queue::QueueState;
use super::round::BATCHES_IN_FLIGHT;
use super::settlement::{IntegrationVersion, may_continue};
use crate::integration::Network;
use crate::vocabulary::id::DeliveryId;
use crate::vocabulary::time::Timestamp;

/// Number of parts, and so of nodes that work on a queue at the same time. Each holder sends up to
/// [`BATCHES_IN_FLIGHT`] requests at once. With more parts, nodes would mostly hit the rate limits
/// of the networks.
pub const PARTS: u8 = 4;
/// Full rounds in each part of a backlog that is large enough to be shared. With fewer, requests
/// would contain fewer events than they can, and deliveries in flight would count for much of the
/// backlog.
const ROUNDS_PER_PART: usize = 2;

/// Returns the number of due deliveries from which a queue is shared.
pub fn shared_from(network: Network) -> u32 {
    let round = network.batch_max() * BATCHES_IN_FLIGHT;
    u32::try_from(round * ROUNDS_PER_PART * usize::from(PARTS)).unwrap_or(u32::MAX)
}

/// A part of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueuePart(u8);

impl QueuePart {
    /// Returns all parts.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..PARTS).map(Self)
    }

    /// Returns the part of a delivery. The last byte of an id is evenly distributed; the first ones
    /// are a time.
    pub fn of(delivery: &DeliveryId) -> Self {
        let [.., last] = delivery.as_bytes();
        Self(last % PARTS)
    }

    /// Reads a stored number.
    pub fn from_number(number: i64) -> Option<Self> {
        u8::try_from(number)
            .ok()
            .filter(|number| *number < PARTS)
            .map(Self)
    }

    /// Returns the number of the part, from 0.
    pub fn number(self) -> i64 {
        i64::from(self.0)
    }
}

/// What a lease covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueShare {
    /// All deliveries of the queue.
    Whole,
    /// The deliveries of one part.
    Part(QueuePart),
}

impl QueueShare {
    /// Returns whether the holder sends this delivery.
    pub fn contains(self, delivery: &DeliveryId) -> bool {
        match self {
            Self::Whole => true,
            Self::Part(part) => QueuePart::of(delivery) == part,
        }
    }

    /// Returns whether the holder checks the status of earlier requests. Only one of several
    /// holders does.
    pub const fn checks_status(self) -> bool {
        matches!(self, Self::Whole | Self::Part(QueuePart(0)))
    }
}

/// Whether nodes share a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueSharing {
    /// The queue is leased as a whole.
    Off,
    /// The queue is leased as a whole, and other nodes may ask for a share.
    Offered,
    /// A node asked for a share: the queue is leased in parts if its backlog is large.
    Wanted,
}

crate::keywords! {
    QueueSharing {
        Off => "off",
        Offered => "offered",
        Wanted => "wanted",
    }
}

/// Latest lease of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartLease {
    /// The part.
    pub part: QueuePart,
    /// Whether the part was neither released nor taken over with the whole queue.
    pub is_held: bool,
    /// End of the lease.
    pub until: Timestamp,
}

impl PartLease {
    fn is_active(&self, now: Timestamp) -> bool {
        self.is_held && self.until > now
    }
}

/// Facts for leasing a queue or a part of it.
#[derive(Debug, Clone)]
pub struct SharingFacts {
    /// State of the queue.
    pub state: QueueState,
    /// Whether the queue is shared.
    pub sharing: QueueSharing,
    /// End of the latest lease, of the whole queue or of any part; `None` if it was released.
    pub leased_until: Option<Timestamp>,
    /// Latest leases of the parts.
    pub parts: Vec<PartLease>,
    /// Number of due deliveries, counted up to `shared_from`.
    pub due: u32,
    /// Number of due deliveries from which a queue is shared.
    pub shared_from: u32,
}

/// Which leases a queue has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueOccupancy {
    /// None.
    Free,
    /// One lease for the whole queue.
    Whole,
    /// Leases of parts.
    Parts,
}

/// Decision about leasing a queue or a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShareDecision {
    /// Lease nothing.
    Refuse,
    /// Lease nothing, but change whether the queue is shared.
    Announce(QueueSharing),
    /// Lease the share.
    Take {
        /// The share.
        share: QueueShare,
        /// Whether the queue is shared from now on.
        sharing: QueueSharing,
    },
}

impl SharingFacts {
    /// Returns which leases the queue has.
    pub fn occupancy(&self, now: Timestamp) -> QueueOccupancy {
        if self.leased_until.is_none_or(|until| until <= now) {
            QueueOccupancy::Free
        } else if self.parts.iter().any(|part| part.is_active(now)) {
            QueueOccupancy::Parts
        } else {
            QueueOccupancy::Whole
        }
    }

    /// Returns whether nothing can be leased, however many deliveries are due. They need not be
    /// counted then.
    pub fn is_refused(&self, now: Timestamp) -> bool {
        let stopped = self.state.is_stopped_at(now);
        stopped
            || match self.occupancy(now) {
                QueueOccupancy::Free => false,
                QueueOccupancy::Whole => self.sharing != QueueSharing::Offered,
                QueueOccupancy::Parts => self.state.is_probing || self.free_part(now).is_none(),
            }
    }

    /// Decides what a process leases. The whole queue and a part of it are never leased at the same
    /// time.
    pub fn decide(&self, now: Timestamp) -> ShareDecision {
        if self.is_refused(now) {
            return ShareDecision::Refuse;
        }
        let is_large = self.due >= self.shared_from;
        // Several holders would send several events to find out whether the network has recovered.
        let may_share = is_large && !self.state.is_probing;
        match (self.occupancy(now), self.sharing) {
            (QueueOccupancy::Whole, QueueSharing::Offered) if may_share => {
                ShareDecision::Announce(QueueSharing::Wanted)
            }
            (QueueOccupancy::Whole, QueueSharing::Offered) if !is_large => {
                ShareDecision::Announce(QueueSharing::Off)
            }
            (QueueOccupancy::Parts, _) | (QueueOccupancy::Free, QueueSharing::Wanted)
                if may_share =>
            {
                self.take_part(now)
            }
            (QueueOccupancy::Whole | QueueOccupancy::Parts, _) => ShareDecision::Refuse,
            (QueueOccupancy::Free, _) => ShareDecision::Take {
                share: QueueShare::Whole,
                sharing: if is_large {
                    QueueSharing::Offered
                } else {
                    QueueSharing::Off
                },
            },
        }
    }

    fn take_part(&self, now: Timestamp) -> ShareDecision {
        let part = self.free_part(now);
        part.map_or(ShareDecision::Refuse, |part| ShareDecision::Take {
            share: QueueShare::Part(part),
            sharing: QueueSharing::Wanted,
        })
    }

    /// Finds the free part whose last lease ended first, so that all parts get their turn.
    fn free_part(&self, now: Timestamp) -> Option<QueuePart> {
        let latest = |part| self.parts.iter().find(|lease| lease.part == part);
        let free =
            QueuePart::all().filter(|part| latest(*part).is_none_or(|one| !one.is_active(now)));
        free.min_by_key(|part| latest(*part).map(|lease| lease.until))
    }
}

/// Returns when the last of the other parts' leases ends; `None` if no other part is leased.
pub fn lease_end_without(
    parts: &[PartLease],
    released: QueuePart,
    now: Timestamp,
) -> Option<Timestamp> {
    let others = parts.iter().filter(|lease| lease.part != released);
    let active = others.filter(|lease| lease.is_active(now));
    active.map(|lease| lease.until).max()
}

/// Facts for continuing with a lease.
#[derive(Debug, Clone)]
pub struct LeaseFacts {
    /// What the lease covers; `None` if it was lost.
    pub share: Option<QueueShare>,
    /// Version of the integration.
    pub version: Option<IntegrationVersion>,
    /// State of the queue.
    pub state: QueueState,
    /// Whether the queue is shared.
    pub sharing: QueueSharing,
}

impl LeaseFacts {
    /// Returns what a process may continue with that leased the queue at this revision. A pause or
    /// back-off by another holder stops it, and so does a node that asks for a share of the queue.
    pub fn continued_share(&self, revision: i64, now: Timestamp) -> Option<QueueShare> {
        let has_to_share =
            self.share == Some(QueueShare::Whole) && self.sharing == QueueSharing::Wanted;
        let may_continue =
            may_continue(revision, self.version) && !self.state.is_stopped_at(now) && !has_to_share;
        self.share.filter(|_| may_continue)
    }
}

#[cfg(test)]
mod tests;
