//! Whether a standby may serve a report.
//!
//! A standby replays the log of the primary, usually some milliseconds later. A node notes the
//! position of the primary's log from time to time. Once the standby has replayed a noted position,
//! it contains everything that was committed before that note. So one clock, the node's, is enough
//! to say how far behind the standby is. All times are durations since the node was started.

use std::collections::VecDeque;
use std::time::Duration;

/// Minimum time between two notes. More would not make the lag more precise than it is useful.
const NOTE_INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Maximum number of notes. When they are full, every second one is dropped, so that old times are
/// known less precisely than recent ones.
const NOTES_MAX: usize = 1_024;

/// A position in the log of the primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition(u64);

impl LogPosition {
    /// Parses PostgreSQL's format: two hexadecimal numbers, such as `16/B374D848`.
    pub fn parse(text: &str) -> Option<Self> {
        let (high, low) = text.split_once('/')?;
        let high = u32::from_str_radix(high, 16).ok()?;
        let low = u32::from_str_radix(low, 16).ok()?;
        Some(Self(u64::from(high) << 32 | u64::from(low)))
    }
}

/// A position of the primary, and a time before it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PositionNote {
    at: Duration,
    position: LogPosition,
}

/// Noted positions of the primary, oldest first.
#[derive(Debug, Default)]
pub struct PrimaryHistory {
    notes: VecDeque<PositionNote>,
}

/// Whether a standby may serve a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandbyDecision {
    /// It contains everything up to the latest note.
    Current,
    /// It is behind, but within the bound, and contains the caller's changes.
    Behind,
    /// It must not serve the report.
    Rejected(PrimaryReason),
}

/// Why the primary serves a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrimaryReason {
    /// The standby is further behind than allowed.
    Lag,
    /// The standby has not replayed a change that the caller made.
    OwnChange,
    /// The standby does not answer, or is not a standby of the primary.
    Unusable,
    /// The standby cancelled the query because replay had to change what the query was reading.
    Conflict,
    /// A rule refused the request. The standby may lack the data that allows it.
    Refusal,
}

impl PrimaryReason {
    /// Every reason.
    pub const ALL: [Self; 5] = [
        Self::Lag,
        Self::OwnChange,
        Self::Unusable,
        Self::Conflict,
        Self::Refusal,
    ];

    /// Returns the name for metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lag => "lag",
            Self::OwnChange => "own_change",
            Self::Unusable => "unusable",
            Self::Conflict => "conflict",
            Self::Refusal => "refusal",
        }
    }
}

impl PrimaryHistory {
    /// Notes the position that the primary reported in response to a question sent at `at`.
    ///
    /// Positions increase, except after a failover to a standby that lacked the latest changes.
    /// Earlier notes are then meaningless.
    pub fn note(&mut self, at: Duration, position: LogPosition) {
        if self.last().is_some_and(|last| at < last.at) {
            // A slow answer; a later question was answered first.
            return;
        }
        if self.last().is_some_and(|last| position < last.position) {
            self.notes.clear();
        }
        let before_last = self.notes.iter().nth_back(1);
        if before_last.is_some_and(|note| at.saturating_sub(note.at) < NOTE_INTERVAL_MIN) {
            self.notes.pop_back();
        }
        if self.notes.len() >= NOTES_MAX {
            let mut is_kept = false;
            self.notes.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
        self.notes.push_back(PositionNote { at, position });
    }

    fn last(&self) -> Option<&PositionNote> {
        self.notes.back()
    }

    /// Returns a time such that a standby that has replayed `replayed` contains everything committed
    /// before it. `None` if it is older than all notes.
    pub fn complete_until(&self, replayed: LogPosition) -> Option<Duration> {
        let known = |note: &&PositionNote| note.position <= replayed;
        self.notes.iter().rev().find(known).map(|note| note.at)
    }

    /// Returns how far a standby is behind, measured at the latest note. A standby that is older
    /// than all notes is at least that far behind. Zero without notes.
    pub fn lag(&self, replayed: LogPosition) -> Duration {
        let latest = self.last().map_or(Duration::ZERO, |note| note.at);
        let oldest = self.notes.front().map_or(Duration::ZERO, |note| note.at);
        latest.saturating_sub(self.complete_until(replayed).unwrap_or(oldest))
    }

    /// Decides whether a standby that has replayed `replayed` may serve a report. `changed_at` is the
    /// time of the caller's latest change.
    ///
    /// If the primary does not answer, there are no new notes. The lag is then the one at the latest
    /// note, so the standby goes on serving reports.
    pub fn decide(
        &self,
        replayed: LogPosition,
        changed_at: Option<Duration>,
        lag_max: Duration,
    ) -> StandbyDecision {
        let Some(complete_until) = self.complete_until(replayed) else {
            return StandbyDecision::Rejected(PrimaryReason::Lag);
        };
        if changed_at.is_some_and(|changed_at| changed_at >= complete_until) {
            return StandbyDecision::Rejected(PrimaryReason::OwnChange);
        }
        let is_current = self.last().is_some_and(|last| last.position <= replayed);
        match self.lag(replayed) {
            _ if is_current => StandbyDecision::Current,
            lag if lag <= lag_max => StandbyDecision::Behind,
            _ => StandbyDecision::Rejected(PrimaryReason::Lag),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAG_MAX: Duration = Duration::from_secs(10);

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    /// One note per second, with the second as position.
    fn history(until: u64) -> PrimaryHistory {
        let mut history = PrimaryHistory::default();
        for second in 1..=until {
            history.note(seconds(second), LogPosition(second));
        }
        history
    }

    #[test]
    fn parses_positions() {
        for (text, expected) in [
            ("0/0", Some(0)),
            ("16/B374D848", Some(0x16_B374_D848)),
            ("FFFFFFFF/FFFFFFFF", Some(u64::MAX)),
            ("16", None),
            ("16/", None),
            ("1/100000000", None),
            ("x/1", None),
        ] {
            assert_eq!(
                LogPosition::parse(text),
                expected.map(LogPosition),
                "{text}"
            );
        }
    }

    #[test]
    fn decides_by_lag_and_by_the_callers_change() {
        use StandbyDecision::{Behind, Current, Rejected};
        for (replayed, changed_at, expected) in [
            (20, None, Current),
            (25, None, Current),
            (19, None, Behind),
            (10, None, Behind),
            (9, None, Rejected(PrimaryReason::Lag)),
            (0, None, Rejected(PrimaryReason::Lag)),
            (15, Some(14), Behind),
            (15, Some(15), Rejected(PrimaryReason::OwnChange)),
            (15, Some(18), Rejected(PrimaryReason::OwnChange)),
            (20, Some(19), Current),
            // A change after the latest note.
            (25, Some(20), Rejected(PrimaryReason::OwnChange)),
        ] {
            let decided =
                history(20).decide(LogPosition(replayed), changed_at.map(seconds), LAG_MAX);
            assert_eq!(decided, expected, "{replayed} {changed_at:?}");
        }
    }

    #[test]
    fn nothing_is_known_without_notes() {
        let decided = PrimaryHistory::default().decide(LogPosition(1), None, LAG_MAX);
        assert_eq!(decided, StandbyDecision::Rejected(PrimaryReason::Lag));
    }

    #[test]
    fn measures_the_lag_at_the_latest_note() {
        let history = history(20);
        assert_eq!(history.lag(LogPosition(20)), Duration::ZERO);
        assert_eq!(history.lag(LogPosition(17)), seconds(3));
        assert_eq!(history.lag(LogPosition(0)), seconds(19));
        assert_eq!(
            PrimaryHistory::default().lag(LogPosition(0)),
            Duration::ZERO
        );
    }

    #[test]
    fn an_idle_primary_has_no_lag() {
        let mut history = PrimaryHistory::default();
        for second in 1..=20 {
            history.note(seconds(second), LogPosition(7));
        }
        assert_eq!(history.lag(LogPosition(7)), Duration::ZERO);
        assert_eq!(history.complete_until(LogPosition(7)), Some(seconds(20)));
    }

    #[test]
    fn a_failover_to_an_earlier_position_discards_the_notes() {
        let mut history = history(20);
        history.note(seconds(21), LogPosition(5));
        assert_eq!(history.complete_until(LogPosition(4)), None);
        assert_eq!(history.complete_until(LogPosition(5)), Some(seconds(21)));
    }

    #[test]
    fn a_late_answer_is_ignored() {
        for position in [15, 30] {
            let mut history = history(20);
            history.note(seconds(19), LogPosition(position));
            assert_eq!(history.complete_until(LogPosition(20)), Some(seconds(20)));
            assert_eq!(history.complete_until(LogPosition(12)), Some(seconds(12)));
        }
    }

    #[test]
    fn frequent_notes_replace_each_other() {
        let mut history = PrimaryHistory::default();
        for millisecond in 1..=1_000 {
            history.note(Duration::from_millis(millisecond), LogPosition(millisecond));
        }
        assert!(history.notes.len() <= 12, "{}", history.notes.len());
        let latest = seconds(1);
        assert_eq!(history.complete_until(LogPosition(1_000)), Some(latest));
    }

    #[test]
    fn a_long_lag_is_never_underestimated() {
        let history = history(100_000);
        assert!(history.notes.len() <= NOTES_MAX);
        assert_eq!(history.lag(LogPosition(100_000)), Duration::ZERO);
        assert_eq!(history.lag(LogPosition(99_999)), seconds(1));
        let lag = history.lag(LogPosition(50_000));
        assert!(lag >= seconds(50_000), "{lag:?}");
    }
}
