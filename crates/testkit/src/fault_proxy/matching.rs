//! Finds the point at which a connection is cut.

use super::{Cut, CutKind, CutMoment, CutPoint, FlowDirection, Shared, locked};

/// The armed cut.
#[derive(Default)]
pub(super) struct Armed {
    /// Changes when another cut is armed.
    generation: u64,
    cut: Option<Cut>,
}

impl Armed {
    pub(super) fn replace(&mut self, cut: Option<Cut>) {
        self.generation += 1;
        self.cut = cut;
    }
}

/// A match in the bytes that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CutMatch {
    /// Number of the read bytes to forward before the cut.
    pub(super) forwarded: usize,
    pub(super) moment: CutMoment,
    pub(super) kind: CutKind,
}

/// Looks for the armed cut in one direction of a connection.
pub(super) struct Matcher {
    direction: FlowDirection,
    generation: u64,
    /// Bytes still to come before a cut at a number of bytes; `None` once it was passed.
    remaining: Option<u64>,
    /// The last bytes before those read now, in which a pattern may begin.
    tail: Vec<u8>,
}

impl Matcher {
    pub(super) fn new(direction: FlowDirection) -> Self {
        Self {
            direction,
            generation: 0,
            remaining: None,
            tail: Vec::new(),
        }
    }

    /// Returns the first match in the bytes that is to be cut.
    pub(super) fn find(&mut self, shared: &Shared, bytes: &[u8]) -> Option<CutMatch> {
        let mut armed = locked(&shared.armed);
        let generation = armed.generation;
        let cut = armed.cut.as_mut()?;
        if cut.direction != self.direction || cut.times == 0 {
            return None;
        }
        if self.generation != generation {
            self.generation = generation;
            self.tail.clear();
            self.remaining = match cut.point {
                CutPoint::Byte(bytes) => Some(bytes),
                CutPoint::RandomByte(below) => Some(shared.below(below)),
                CutPoint::Pattern(_) => None,
            };
        }
        let is_chosen = || shared.below(u64::from(cut.one_in)) == 0;
        let forwarded = match &cut.point {
            CutPoint::Byte(_) | CutPoint::RandomByte(_) => {
                let at = count_down(&mut self.remaining, bytes.len());
                at.filter(|_| is_chosen())
            }
            CutPoint::Pattern(pattern) => {
                let found = matches(&mut self.tail, bytes, pattern);
                let mut chosen = found.into_iter().filter(|_| is_chosen());
                chosen.next().map(|(begin, end)| match cut.moment {
                    CutMoment::Before => begin,
                    CutMoment::After | CutMoment::OnAnswer => end,
                })
            }
        };
        let forwarded = forwarded?;
        cut.times -= 1;
        Some(CutMatch {
            forwarded,
            moment: cut.moment,
            kind: cut.kind,
        })
    }
}

/// Returns how many of the bytes come before the cut, if the cut is among them.
fn count_down(remaining: &mut Option<u64>, count: usize) -> Option<usize> {
    let left = (*remaining)?;
    let at = usize::try_from(left).ok().filter(|at| *at <= count);
    *remaining = if at.is_some() {
        None
    } else {
        Some(left - count as u64)
    };
    at
}

/// Returns begin and end of each match, within `bytes`. A match may begin in the tail, which then
/// becomes the tail for the next bytes.
fn matches(tail: &mut Vec<u8>, bytes: &[u8], pattern: &[u8]) -> Vec<(usize, usize)> {
    let before = tail.len();
    tail.extend_from_slice(bytes);
    let windows = tail.windows(pattern.len().max(1)).enumerate();
    let found = windows.filter(|(_, window)| *window == pattern);
    let ranges = found.map(|(at, window)| {
        let end = (at + window.len()).saturating_sub(before);
        (at.saturating_sub(before), end)
    });
    let ranges = ranges.collect();
    let kept = tail.len().min(pattern.len().saturating_sub(1));
    tail.drain(..tail.len() - kept);
    ranges
}
