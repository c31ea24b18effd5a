//! Wiping the test data of an app: the steps, their order, and the count of removed rows.
//!
//! A wipe is many short transactions, so that live requests do not wait for the whole. The order of the steps
//! makes it safe to stop after any of them; another wipe finishes the work:
//!
//! * Notifications come before events. A notification is settled together with the stored ones of
//!   its subscription, which replaces their events. Once none is left, no event comes back.
//! * Clicks come before devices, because the first device tells where the test clicks begin.
//! * A device goes together with its last events, so that it starts over as if it were new.
//! * Figures come last. They are counted again from what arrived during the wipe, which stays.

use crate::click::APP_OPEN_INTERVAL_MILLIS;
use crate::vocabulary::day::Day;
use crate::vocabulary::id::ClickId;
use crate::vocabulary::time::Timestamp;
use std::ops::AddAssign;
use std::time::Duration;

/// First day that can have figures. Event times are later than 1970.
const FIRST_DAY: Day = Day::from_days(0);
/// Longest time by which the clocks of two nodes may differ.
const CLOCK_DIFFERENCE_MAX: Duration = Duration::from_mins(10);

/// A step of a wipe. Each step runs until it finds nothing more to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WipeStep {
    /// Writes the audit log entry, so that no row is removed without one.
    Begin,
    /// Notifications of billing providers, with their events.
    Notifications,
    /// Events.
    Events,
    /// Clicks that test keys reported, from this id on; `None` begins with the first device.
    Clicks(Option<ClickId>),
    /// Devices with everything that is stored about them.
    Devices,
    /// Clicks that were reported after the first pass. Their devices may be gone by now, and without
    /// a device the next wipe would not look for clicks.
    LateClicks(Option<ClickId>),
    /// Lookup keys of subscriptions, and event ids that are reserved without an event.
    Keys,
    /// Finds the next day with figures, from this day on.
    FindFigures(Day),
    /// Figures of a day.
    Figures(Day),
}

impl WipeStep {
    /// Returns the step after this one; `None` after the last one.
    pub const fn following(self) -> Option<Self> {
        Some(match self {
            Self::Begin => Self::Notifications,
            Self::Notifications => Self::Events,
            Self::Events => Self::Clicks(None),
            Self::Clicks(_) => Self::Devices,
            Self::Devices => Self::LateClicks(None),
            Self::LateClicks(_) => Self::Keys,
            Self::Keys => Self::FindFigures(FIRST_DAY),
            Self::Figures(day) => Self::FindFigures(day.following()),
            Self::FindFigures(_) => return None,
        })
    }
}

/// Numbers of removed rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WipedRows {
    /// Clicks that test keys reported.
    pub clicks: u64,
    /// Devices.
    pub devices: u64,
    /// Events, with installs.
    pub events: u64,
    /// Notifications of billing providers.
    pub notifications: u64,
    /// Rows of figures.
    pub figures: u64,
}

impl WipedRows {
    /// Returns the number of all removed rows.
    pub const fn total(&self) -> u64 {
        self.clicks + self.devices + self.events + self.notifications + self.figures
    }
}

impl AddAssign for WipedRows {
    fn add_assign(&mut self, other: Self) {
        self.clicks += other.clicks;
        self.devices += other.devices;
        self.events += other.events;
        self.notifications += other.notifications;
        self.figures += other.figures;
    }
}

/// Returns a lower bound for the ids of clicks that devices reported at a time or later. The id of
/// such a click begins with the start of an interval, and another node's clock may be behind.
pub fn first_click_reported_at(at: Timestamp) -> ClickId {
    let interval = Duration::from_millis(APP_OPEN_INTERVAL_MILLIS.unsigned_abs());
    ClickId::first_at(at.minus(interval + CLOCK_DIFFERENCE_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_end_after_the_last_day_with_figures() {
        let mut step = WipeStep::Begin;
        let mut steps = 1;
        while let Some(next) = step.following() {
            step = next;
            steps += 1;
        }
        assert_eq!((step, steps), (WipeStep::FindFigures(FIRST_DAY), 8));
        let day = Day::from_days(20_000);
        assert_eq!(
            WipeStep::Figures(day).following(),
            Some(WipeStep::FindFigures(day.following()))
        );
    }

    #[test]
    fn a_click_that_another_node_recorded_is_not_missed() {
        let at = Timestamp::from_millis(1_800_000_000_000);
        let first = first_click_reported_at(at);
        let in_the_interval = ClickId::first_at(at.minus(Duration::from_mins(19)));
        let long_before = ClickId::first_at(at.minus(Duration::from_mins(21)));
        assert!(long_before < first && first < in_the_interval);
    }

    #[test]
    fn counts_add_up() {
        let mut all = WipedRows::default();
        for clicks in 1..=3 {
            all += WipedRows {
                clicks,
                devices: 1,
                events: 2,
                notifications: 3,
                figures: 4,
            };
        }
        assert_eq!((all.clicks, all.total()), (6, 36));
    }
}
