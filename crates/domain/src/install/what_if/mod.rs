//! What-if: replays stored installs under other attribution rules, and changes nothing.
//!
//! A decision is a pure function of evidence, candidates and rules. [`WhatIf`] rebuilds the
//! evidence from what is stored about an install, calls the same [`decide`] that recorded it, and
//! compares the credits. Evidence that is not stored is never guessed: a [`ReplayGap`] says for
//! which installs it is missing, and why.
//!
//! Installs are replayed in the order of their first opens, because a click counts for one install:
//! a click that one install loses can go to a later one.
//!
//! [`decide`]: crate::attribution::decide

mod period;
mod rebuild;
mod replay;
mod report;

#[cfg(test)]
mod tests;

pub use rebuild::ReplayQuery;
pub use report::{MovedInstall, ReplayMove, ReplayPlace, WhatIf, WhatIfReport, WhatIfRow};

use super::Attribution;
use crate::click::Click;
use crate::device::{Device, DeviceKey};
use crate::report::range::{DayRange, days_before};
use crate::vocabulary::calendar;
use crate::vocabulary::id::EventId;
use crate::vocabulary::time::Timestamp;
use crate::vocabulary::timezone::Timezone;

/// Length of the replayed period in days, including today. Clicks that no decision refers to are
/// deleted after a while, so longer periods would have more gaps.
pub const WHAT_IF_DAYS: i32 = 30;
/// Maximum number of installs per replay: the newest ones. Half a minute is the usual deadline of a
/// request, and a replay of this many installs takes a part of it.
pub const WHAT_IF_INSTALLS_MAX: u32 = 50_000;
/// Number of installs per database read. A read takes some tens of milliseconds, so that a replay
/// holds no snapshot and no connection for long.
pub const WHAT_IF_PAGE_INSTALLS: u32 = 500;
/// Maximum number of moves in a report: more than a person reads.
pub const WHAT_IF_MOVES_MAX: usize = 200;
/// Maximum number of campaigns in a report.
pub const WHAT_IF_CAMPAIGNS_MAX: usize = 500;
/// Maximum number of example installs per move.
pub const WHAT_IF_EXAMPLES_MAX: usize = 3;

/// Returns the days whose installs are replayed.
pub fn what_if_days(now: Timestamp, zone: Timezone) -> DayRange {
    let to = calendar::today(now, &zone);
    DayRange {
        from: days_before(to, WHAT_IF_DAYS - 1),
        to,
        zone,
    }
}

/// An install with everything that is stored about its attribution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredInstall {
    /// Install event. Its id begins with the time of the install.
    pub install: EventId,
    /// Device, as of its latest call.
    pub device: Device,
    /// Attribution.
    pub attribution: Attribution,
    /// Clicks of [`ReplayQuery::clicks`] that are still stored.
    pub clicks: Vec<ReplayClick>,
    /// Clicks with the advertising id of [`ReplayQuery::advertising_id`], not later than the first
    /// open, newest first.
    pub same_advertising_id: Vec<ReplayClick>,
    /// Counted revenue of the device's events, in millionths of a US dollar.
    pub revenue_micros: i64,
    /// Counted refunds of the device's events, in millionths of a US dollar.
    pub refunded_micros: i64,
}

/// A stored click with the install that claimed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayClick {
    /// Click.
    pub click: Click,
    /// Claiming install.
    pub owner: Option<ClickOwner>,
}

/// The live install that claimed a click.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClickOwner {
    /// Device.
    pub device: DeviceKey,
    /// First open of the device; `None` if the device is not stored.
    pub first_open_at: Option<Timestamp>,
}

/// Why an install could not be replayed, or its new credit is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReplayGap {
    /// The evidence was erased, removed by retention, or never stored here because the install was
    /// imported.
    EvidenceRemoved,
    /// A click that the decision names is deleted.
    ClickRemoved,
    /// The decision lists only some of the clicks from the device's address.
    CandidatesCut,
    /// The stored evidence does not lead to the stored decision, for example because the device's
    /// OS version has changed since the install.
    NotReproduced,
    /// Better evidence arrived after the end of the click window, either the stored one or the tried
    /// one, and what is stored does not say what it would change.
    LateEvidence,
    /// The install loses its credit. Another click from its address may match, but these clicks were
    /// not compared at the install.
    AddressUnknown,
    /// The install loses its credit. Apple reported an ad, but only the credited ad is stored, or only
    /// that of a tap that came after a view.
    AppleAdUnknown,
    /// The ad named by the Play Store would count, but only the credited ad is stored.
    StoreAdUnknown,
}

crate::keywords! {
    ReplayGap {
        EvidenceRemoved => "evidence_removed",
        ClickRemoved => "click_removed",
        CandidatesCut => "candidates_cut",
        NotReproduced => "not_reproduced",
        LateEvidence => "late_evidence",
        AddressUnknown => "address_unknown",
        AppleAdUnknown => "apple_ad_unknown",
        StoreAdUnknown => "store_ad_unknown",
    }
}

impl ReplayGap {
    /// Returns whether the install certainly loses its credit, while the new one is not known.
    /// Otherwise the install keeps its credit in the report.
    pub const fn loses_credit(self) -> bool {
        matches!(
            self,
            Self::AddressUnknown | Self::AppleAdUnknown | Self::StoreAdUnknown
        )
    }
}
