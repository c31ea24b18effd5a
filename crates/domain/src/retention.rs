//! Attribution data is kept for a time after a device's last activity, then forgotten.
//!
//! The device's own id and its credit stay: a returning device makes no second install, and a renewal keeps its
//! credit. Ids, hashes, traits and the clicks that were considered go.

use crate::attribution::Decision;
use crate::attribution::evidence::ReferrerTimes;
use crate::click::agent::Agent;
use crate::click::params::TrackingParams;
use crate::click::{Click, StoredClick};
use crate::device::{Device, DeviceRef, Traits};
use crate::install::Attribution;
use crate::vocabulary::time::Timestamp;
use std::collections::BTreeMap;

/// What the store knows about a device whose attribution data may be due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceActivity {
    /// The device's last call, if it was ever configured.
    pub last_seen: Option<Timestamp>,
    /// The time of its latest event, from any source.
    pub last_event: Option<Timestamp>,
    /// Whether a billing provider reported events for it.
    pub has_billing: bool,
}

/// What happens to a device's attribution data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetentionVerdict {
    /// The device was active since; look again when this activity is old enough.
    Keep {
        /// The latest activity.
        active_at: Timestamp,
    },
    /// Forget it.
    Forget {
        /// Whether the device's links to user ids go as well.
        user_links: bool,
    },
}

/// Decides whether a device's attribution data goes: all activity lies before `before`.
///
/// Devices with billing events keep their links to user ids. Subscriptions are settled as a whole whenever a
/// notification arrives, however late, and without the link a renewal would lose its device and credit.
pub fn decide(activity: DeviceActivity, before: Timestamp) -> RetentionVerdict {
    match activity.last_seen.max(activity.last_event) {
        Some(active_at) if active_at >= before => RetentionVerdict::Keep { active_at },
        _ => RetentionVerdict::Forget {
            user_links: !activity.has_billing,
        },
    }
}

/// Returns what stays of a device: id, platform, country, consent and when it was seen.
#[must_use]
pub fn redact_device(device: Device) -> Device {
    Device {
        traits: Traits::of(device.traits.platform),
        advertising_id: None,
        idfv: None,
        ..device
    }
}

/// Returns what stays of the decision about an install: its credit, and the reason in one sentence.
#[must_use]
pub fn redact_attribution(attribution: Attribution) -> Attribution {
    let decision = Decision {
        keyword: None,
        network_click_id: None,
        deep_link: None,
        custom_data: BTreeMap::new(),
        query_params: BTreeMap::new(),
        // Each names a click, its time and its score.
        candidates: Vec::new(),
        times: ReferrerTimes::default(),
        ..attribution.decision
    };
    Attribution {
        decision,
        ..attribution
    }
}

/// Returns what stays of the click that an install was credited to: when, which link, which campaign.
#[must_use]
pub fn redact_click(click: Click) -> Click {
    Click {
        agent: Agent {
            platform: click.agent.platform,
            os_version: None,
            model: None,
        },
        language: None,
        timezone: None,
        screen: None,
        address: None,
        address_hash: None,
        advertising_hash: None,
        user_agent: None,
        referer: None,
        captured: TrackingParams {
            campaign: click.captured.campaign,
            ..TrackingParams::default()
        },
        ..click
    }
}

/// Returns what stays of clicks that a device took.
#[must_use]
pub fn redact_clicks(device: DeviceRef<'_>, clicks: Vec<StoredClick>) -> Vec<StoredClick> {
    let taken = clicks.into_iter().filter(|one| one.is_taken_by(device));
    taken
        .map(|one| StoredClick {
            click: redact_click(one.click),
            taken_by: one.taken_by,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::never_seen(None, None, false, RetentionVerdict::Forget { user_links: true })]
    #[case::seen_long_ago(Some(99), None, false, RetentionVerdict::Forget { user_links: true })]
    #[case::seen_just_in_time(Some(100), None, false, keep(100))]
    #[case::an_event_of_another_source_counts(Some(10), Some(150), true, keep(150))]
    #[case::a_call_without_events_counts(Some(120), Some(20), false, keep(120))]
    #[case::billing_keeps_user_links(Some(10), Some(99), true, RetentionVerdict::Forget { user_links: false })]
    fn attribution_data_goes_after_the_last_activity(
        #[case] last_seen: Option<i64>,
        #[case] last_event: Option<i64>,
        #[case] has_billing: bool,
        #[case] expected: RetentionVerdict,
    ) {
        let activity = DeviceActivity {
            last_seen: last_seen.map(Timestamp::from_millis),
            last_event: last_event.map(Timestamp::from_millis),
            has_billing,
        };
        assert_eq!(decide(activity, Timestamp::from_millis(100)), expected);
    }

    fn keep(millis: i64) -> RetentionVerdict {
        RetentionVerdict::Keep {
            active_at: Timestamp::from_millis(millis),
        }
    }
}
