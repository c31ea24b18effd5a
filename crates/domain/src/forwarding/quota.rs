//! Turns for requests that share a network's quota, across all nodes.
//!
//! The nodes keep one number in the database for each quota: the time from which turns are free. A
//! node reserves a block of turns at a time, so that it does not write for every request.

use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Time between two turns. Google Ads (`network_b`) allows 300 requests per minute and cloud project,
/// shared by all integrations that use the project.
pub const TURN_INTERVAL: Duration = Duration::from_millis(200);
/// Turns in a block: a second of requests. A node that stops wastes at most these.
const TURNS_PER_BLOCK: u32 = 5;
/// How far ahead turns are reserved at most. More is the mistake of a node whose clock is wrong, and
/// must not stop the others.
const RESERVED_AHEAD_MAX: Duration = Duration::from_mins(1);

/// Consecutive turns that a node has reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaTurns {
    next: Timestamp,
    left: u32,
}

/// A block of turns, and the time from which the following turns are free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaReservation {
    /// The reserved turns.
    pub turns: QuotaTurns,
    /// Where the next block begins.
    pub free_from: Timestamp,
}

/// Reserves the next block of turns.
pub fn reserve_turns(free_from: Option<Timestamp>, now: Timestamp) -> QuotaReservation {
    let free_from = free_from.filter(|free| *free <= now.plus(RESERVED_AHEAD_MAX));
    let first = free_from.unwrap_or(now).max(now);
    QuotaReservation {
        turns: QuotaTurns {
            next: first,
            left: TURNS_PER_BLOCK,
        },
        free_from: first.plus(TURN_INTERVAL * TURNS_PER_BLOCK),
    }
}

impl QuotaTurns {
    /// Takes the next turn. Turns that were not used in time are lost, so that they are not used all
    /// at once later. `None` if no turn is left.
    pub fn take(&mut self, now: Timestamp) -> Option<Timestamp> {
        while self.left > 0 {
            let turn = self.next;
            self.left -= 1;
            self.next = turn.plus(TURN_INTERVAL);
            if self.next > now {
                return Some(turn);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[rstest]
    #[case::first(None, 10_000, 11_000)]
    #[case::unused_for_a_while(Some(9_000), 10_000, 11_000)]
    #[case::free_now(Some(10_000), 10_000, 11_000)]
    #[case::reserved_by_others(Some(12_400), 12_400, 13_400)]
    #[case::as_far_as_allowed(Some(70_000), 70_000, 71_000)]
    #[case::wrong_clock(Some(70_001), 10_000, 11_000)]
    fn blocks_follow_each_other(
        #[case] free_from: Option<i64>,
        #[case] first: i64,
        #[case] next: i64,
    ) {
        let mut reserved = reserve_turns(free_from.map(at), at(10_000));
        assert_eq!(reserved.turns.take(at(10_000)), Some(at(first)));
        assert_eq!(reserved.free_from, at(next));
    }

    #[rstest]
    #[case::all_at_once(&[0, 0, 0, 0, 0, 0], &[Some(0), Some(200), Some(400), Some(600), Some(800), None])]
    #[case::in_time(&[100, 300, 500], &[Some(0), Some(200), Some(400)])]
    #[case::some_are_lost(&[500, 500], &[Some(400), Some(600)])]
    #[case::all_are_lost(&[1_000], &[None])]
    fn turns_are_used_in_time_or_lost(#[case] takes: &[i64], #[case] expected: &[Option<i64>]) {
        let mut turns = reserve_turns(None, at(0)).turns;
        let taken: Vec<Option<i64>> = takes
            .iter()
            .map(|now| turns.take(at(*now)).map(Timestamp::as_millis))
            .collect();
        assert_eq!(taken, expected);
    }
}
