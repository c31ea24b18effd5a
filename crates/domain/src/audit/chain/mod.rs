//! The hash chain of an organization's audit log.
//!
//! Every entry has a sequence number, and a hash of itself and of the hash before it. A change, a
//! gap or another order then fits neither the entry's own hash nor the next one.

use super::json::HashedEntry;
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::AuditId;
use crate::vocabulary::time::Timestamp;
use std::fmt;

/// Sequence number and hash of an entry, from which the next entry continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainEnd {
    /// Sequence number; 0 before the first entry.
    pub sequence: u64,
    /// Hash; zeros before the first entry.
    pub hash: Digest,
}

impl ChainEnd {
    /// The end of an empty chain.
    pub const START: Self = Self {
        sequence: 0,
        hash: Digest::from_bytes([0; 32]),
    };

    /// Returns the end of the chain after an entry is appended.
    #[must_use]
    pub fn after(&self, entry: &HashedEntry) -> Self {
        let sequence = self.sequence.saturating_add(1);
        let line = entry.hashed_line(sequence, self.hash);
        Self {
            sequence,
            hash: Digest::of(line.as_bytes()),
        }
    }
}

/// What retention removed from the start of a chain. The rest of the chain continues from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchor {
    /// Last removed entry. All before it were removed as well.
    pub end: ChainEnd,
    /// When entries were last removed; `None` if none were.
    pub at: Option<Timestamp>,
    /// Number of entries up to the anchor that were missing when retention came to them.
    pub missing: u64,
}

impl Anchor {
    /// The anchor of a chain from which nothing was removed.
    pub const NONE: Self = Self {
        end: ChainEnd::START,
        at: None,
        missing: 0,
    };
}

/// State of an organization's chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditChain {
    /// Last entry.
    pub end: ChainEnd,
    /// What retention removed.
    pub anchor: Anchor,
    /// Whether entries from before the chain was introduced still wait for their place. Until then,
    /// new entries wait too, so that the order of the chain is the order of time.
    pub is_waiting: bool,
}

impl AuditChain {
    /// A new organization's chain.
    pub const NEW: Self = Self {
        end: ChainEnd::START,
        anchor: Anchor::NONE,
        is_waiting: false,
    };
}

/// Place of a stored entry in its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainedId {
    /// Entry id, which contains its time.
    pub id: AuditId,
    /// Sequence number and hash.
    pub place: ChainEnd,
}

/// Moves the anchor of a chain over its first entries that are older than `before`. `first` are the
/// first entries of the chain, in order. Returns `None` if the first one is not old enough.
///
/// An entry that is missing there does not stop retention, because the entries after it contain
/// personal data. It is counted, so that the verification still reports it.
pub fn cut(
    anchor: &Anchor,
    first: &[ChainedId],
    before: Timestamp,
    now: Timestamp,
) -> Option<Anchor> {
    let limit = AuditId::first_at(before);
    let old = first.iter().take_while(|entry| entry.id < limit);
    let (mut removed, mut last) = (0_u64, None);
    for entry in old {
        removed = removed.saturating_add(1);
        last = Some(entry.place);
    }
    let end = last?;
    let passed = end.sequence.saturating_sub(anchor.end.sequence);
    Some(Anchor {
        end,
        at: Some(now),
        missing: anchor
            .missing
            .saturating_add(passed.saturating_sub(removed)),
    })
}

/// The first place at which a chain does not verify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainBreak {
    /// Entries are missing: the first and the last of them.
    Missing(u64, u64),
    /// An entry does not match its hash: it was changed, or the entry before it was changed together
    /// with its hash.
    Changed(u64),
    /// An entry is not at its place: its number is not higher than the one before it.
    Misplaced(u64),
    /// Entries exist after the end of the chain, or the end has another hash.
    End(u64),
    /// The entry after the anchor does not continue from it, or the anchor was changed.
    Anchor(u64),
    /// Entries were missing before retention removed the others: their number, and the anchor's
    /// sequence.
    MissingBeforeAnchor(u64, u64),
}

impl ChainBreak {
    /// Returns the sequence number at which the chain breaks.
    pub const fn sequence(&self) -> u64 {
        match self {
            Self::Missing(sequence, _)
            | Self::Changed(sequence)
            | Self::Misplaced(sequence)
            | Self::End(sequence)
            | Self::Anchor(sequence)
            | Self::MissingBeforeAnchor(_, sequence) => *sequence,
        }
    }

    /// Returns the kind of break for machines.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Missing(..) => "missing",
            Self::Changed(_) => "changed",
            Self::Misplaced(_) => "misplaced",
            Self::End(_) => "end",
            Self::Anchor(_) => "anchor",
            Self::MissingBeforeAnchor(..) => "missing_before_anchor",
        }
    }
}

impl fmt::Display for ChainBreak {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(first, last) if first == last => {
                write!(formatter, "entry {first} is missing")
            }
            Self::Missing(first, last) => {
                write!(formatter, "entries {first} to {last} are missing")
            }
            Self::Changed(1) => formatter.write_str("entry 1 was changed"),
            Self::Changed(sequence) => write!(
                formatter,
                "entry {sequence} was changed, or entry {} together with its hash",
                sequence.saturating_sub(1)
            ),
            Self::Misplaced(sequence) => {
                write!(formatter, "entry {sequence} is not in its place")
            }
            Self::End(sequence) => write!(
                formatter,
                "the end of the chain does not match the entries after {sequence}"
            ),
            Self::Anchor(sequence) => write!(
                formatter,
                "the anchor of the removed entries does not match at {sequence}"
            ),
            Self::MissingBeforeAnchor(count, sequence) => write!(
                formatter,
                "{count} entries up to {sequence} were missing before retention removed the others"
            ),
        }
    }
}

/// Verifies a chain entry by entry, in memory that does not depend on its length.
#[derive(Debug, Clone)]
pub struct ChainVerifier {
    end: ChainEnd,
    verified: u64,
}

impl ChainVerifier {
    /// Begins after an entry that is trusted: the anchor.
    pub const fn new(end: ChainEnd) -> Self {
        Self { end, verified: 0 }
    }

    /// Returns the last verified entry, or where the verification began.
    pub const fn end(&self) -> ChainEnd {
        self.end
    }

    /// Returns the number of verified entries.
    pub const fn verified(&self) -> u64 {
        self.verified
    }

    /// Continues from an anchor that retention moved in the meantime. Rejects an anchor that
    /// contradicts what was verified.
    pub fn continue_from(&mut self, anchor: &Anchor) -> Result<(), ChainBreak> {
        let found = anchor.end;
        if found.sequence == self.end.sequence && found.hash != self.end.hash {
            return Err(ChainBreak::Anchor(found.sequence));
        }
        if found.sequence > self.end.sequence {
            self.end = found;
        }
        Ok(())
    }

    /// Checks the place of the next entry, and that its hash is the one of `line`, the line that is
    /// hashed.
    pub fn check(&mut self, place: ChainEnd, line: &str) -> Result<(), ChainBreak> {
        let expected = self.end.sequence.saturating_add(1);
        let sequence = place.sequence;
        if sequence < expected {
            return Err(ChainBreak::Misplaced(sequence));
        }
        if sequence > expected {
            return Err(ChainBreak::Missing(expected, sequence - 1));
        }
        if Digest::of(line.as_bytes()) != place.hash {
            return Err(ChainBreak::Changed(sequence));
        }
        self.end = place;
        self.verified = self.verified.saturating_add(1);
        Ok(())
    }

    /// Checks that the last entry is the end of the chain, and that no entry was missing before
    /// retention removed the others.
    pub fn finish(&self, chain: &AuditChain) -> Result<(), ChainBreak> {
        let (end, anchor) = (chain.end, &chain.anchor);
        if end.sequence > self.end.sequence {
            let first = self.end.sequence.saturating_add(1);
            return Err(ChainBreak::Missing(first, end.sequence));
        }
        if end != self.end {
            return Err(ChainBreak::End(end.sequence));
        }
        match anchor.missing {
            0 => Ok(()),
            count => Err(ChainBreak::MissingBeforeAnchor(count, anchor.end.sequence)),
        }
    }
}

#[cfg(test)]
mod tests;
