//! How old a click was at the install.
//!
//! Judged by Google's clock where it is known. The device's clock belongs to whoever holds the device: it
//! is believed only where there is no other, and the decision says so.

use crate::attribution::Evidence;
use crate::attribution::evidence::ReferrerTimes;
use crate::vocabulary::time::Timestamp;

const SECOND_MILLIS: i64 = 1_000;
const HOUR_MILLIS: i64 = 60 * 60 * SECOND_MILLIS;

/// Whether the store gave no time of its own.
pub(super) const fn is_unverified(times: &ReferrerTimes) -> bool {
    times.click_at_server.is_none() && times.install_begin_at_server.is_none()
}

/// When the install happened that a click of ours may have led to: its begin by Google's clock, else the
/// first open.
pub(super) fn install_at(evidence: &Evidence) -> Timestamp {
    let open = evidence.first_open_at;
    // An app is opened after it was installed, whatever the store's clock says.
    evidence
        .times
        .install_begin_at_server
        .map_or(open, |begin| begin.min(open))
}

/// The same for a click whose id the store delivered, where the device's clock may have to do. One that
/// puts the install before the click is wrong, and is not asked.
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

/// How long after the click the install was, in milliseconds; negative when it was before it.
pub(super) fn age_millis(clicked_at: Timestamp, install_at: Timestamp) -> i64 {
    install_at
        .as_millis()
        .saturating_sub(clicked_at.as_millis())
}

/// Whether a click of that age still counts. Exactly at the end of the window it does.
pub(super) fn is_within(age_millis: i64, window_hours: i64) -> bool {
    age_millis <= window_hours.saturating_mul(HOUR_MILLIS)
}

/// An age as the explanation says it.
pub(super) const fn in_seconds(age_millis: i64) -> i64 {
    age_millis.div_euclid(SECOND_MILLIS)
}

/// The store's times have no fractions of a second, so what is compared with them must have none.
pub(super) const fn whole_seconds(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(SECOND_MILLIS)
}
