//! Age of a click at the install.
//!
//! Google's timestamps are used if there are any. Users can set the device's clock, so the device's
//! timestamps are only a fallback, and a decision that uses them is flagged.

use crate::attribution::Evidence;
use crate::attribution::evidence::ReferrerTimes;
use crate::vocabulary::time::Timestamp;

const SECOND_MILLIS: i64 = 1_000;
const HOUR_MILLIS: i64 = 60 * 60 * SECOND_MILLIS;

/// Returns whether the store sent no timestamps.
pub(super) const fn is_unverified(times: &ReferrerTimes) -> bool {
    times.click_at_server.is_none() && times.install_begin_at_server.is_none()
}

/// Returns the time of the install: its start by Google's clock, otherwise the first open.
pub(super) fn install_at(evidence: &Evidence) -> Timestamp {
    let open = evidence.first_open_at;
    // An app is opened after its installation, whatever the store's clock says.
    evidence
        .times
        .install_begin_at_server
        .map_or(open, |begin| begin.min(open))
}

/// Returns the time of the install for a click whose id the store delivered. Without Google's
/// timestamps it falls back to the device's clock, unless by that clock the install came before the
/// click.
pub(super) fn install_at_for_referrer(evidence: &Evidence, clicked_at: Timestamp) -> Timestamp {
    let by_device = evidence
        .times
        .install_begin_at
        .filter(|begin| *begin >= clicked_at);
    match by_device {
        Some(begin) if is_unverified(&evidence.times) => begin,
        _ => install_at(evidence),
    }
}

/// Names the moment to which a click's age is measured. It may be long before the first open, so an
/// explanation says which one it means.
pub(super) fn name_of_install(evidence: &Evidence, install_at: Timestamp) -> &'static str {
    if install_at < evidence.first_open_at {
        "the installation began"
    } else {
        "the first open"
    }
}

/// Returns the time from click to install in milliseconds; negative if the install came first.
pub(super) fn age_millis(clicked_at: Timestamp, install_at: Timestamp) -> i64 {
    install_at
        .as_millis()
        .saturating_sub(clicked_at.as_millis())
}

/// Returns whether an age is within the window, inclusive.
pub(super) fn is_within(age_millis: i64, window_hours: i64) -> bool {
    age_millis <= window_hours.saturating_mul(HOUR_MILLIS)
}

/// Converts an age to whole seconds.
pub(super) const fn in_seconds(age_millis: i64) -> i64 {
    age_millis.div_euclid(SECOND_MILLIS)
}

/// Truncates to whole seconds, because the store's timestamps have no fractions.
pub(super) const fn whole_seconds(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(SECOND_MILLIS)
}
