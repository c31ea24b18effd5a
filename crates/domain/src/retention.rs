//! Retention: attribution data is removed some time after a device's last activity.
//!
//! The device id and its credit stay, so that a returning device does not count as a second install
//! and a renewal keeps its credit. Other ids, hashes, traits and candidate clicks are removed.

use crate::attribution::Decision;
use crate::attribution::evidence::ReferrerTimes;
use crate::click::agent::Agent;
use crate::click::params::TrackingParams;
use crate::click::{Click, StoredClick};
use crate::device::{Device, DeviceRef, Traits};
use crate::install::Attribution;
use crate::vocabulary::time::Timestamp;
use std::collections::BTreeMap;

/// Activity of a device whose attribution data may be due for removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceActivity {
    /// The device's last call, if it was ever configured.
    pub last_seen: Option<Timestamp>,
    /// Time of the device's latest event from any source.
    pub last_event: Option<Timestamp>,
    /// Whether a billing provider reported events for the device.
    pub has_billing: bool,
}

/// Decision about a device's attribution data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetentionVerdict {
    /// Keep the data: the device was active after the cut-off. Check again when this activity is
    /// before the cut-off.
    Keep {
        /// Time of the latest activity.
        active_at: Timestamp,
    },
    /// Remove the data.
    Forget {
        /// Whether the links to user ids are removed, too.
        user_links: bool,
    },
}

/// Decides whether to remove a device's attribution data: yes if all activity is before `before`.
///
/// Devices with billing events keep their links to user ids. Subscriptions are settled as a whole
/// whenever a notification arrives, however late, and without the link a renewal would lose its
/// device and credit.
pub fn decide(activity: DeviceActivity, before: Timestamp) -> RetentionVerdict {
    match activity.last_seen.max(activity.last_event) {
        Some(active_at) if active_at >= before => RetentionVerdict::Keep { active_at },
        _ => RetentionVerdict::Forget {
            user_links: !activity.has_billing,
        },
    }
}

/// Redacts a device. Keeps its id, platform, country, consent and the times it was seen.
#[must_use]
pub fn redact_device(device: Device) -> Device {
    Device {
        traits: Traits::of(device.traits.platform),
        advertising_id: None,
        idfv: None,
        ..device
    }
}

/// Redacts the attribution of an install. Keeps its credit and the one-sentence reason.
#[must_use]
pub fn redact_attribution(attribution: Attribution) -> Attribution {
    let decision = Decision {
        keyword: None,
        network_click_id: None,
        deep_link: None,
        custom_data: BTreeMap::new(),
        query_params: BTreeMap::new(),
        // Each candidate contains a click id, a time and a score.
        candidates: Vec::new(),
        times: ReferrerTimes::default(),
        ..attribution.decision
    };
    Attribution {
        decision,
        ..attribution
    }
}

/// Redacts the click that an install was credited to. Keeps its time, link and campaign.
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

/// Redacts the clicks credited with a device's install and drops all others.
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
    fn attribution_data_is_removed_after_the_last_activity(
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
