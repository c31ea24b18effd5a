//! Limits of each network: event age, event times in the future, batch size, timeout.

use crate::integration::{Integration, Network, SettingValue};
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// Default maximum age of an event when it is sent.
pub const AGE_MAX: Duration = Duration::from_hours(7 * 24);
/// Maximum age of a click for Google Ads (`network_b`).
const CLICK_AGE_MAX: Duration = Duration::from_hours(90 * 24);
/// Tolerated clock difference. If the event's time is further before the click, the click did not
/// cause the event.
const CLOCK_SKEW_MAX: Duration = Duration::from_mins(10);
/// Safety margin before the age limit, so that the request still arrives in time.
pub const AGE_MARGIN: Duration = Duration::from_mins(10);
/// An event this far in the future is never sent.
pub const LEAD_TERMINAL: Duration = Duration::from_hours(24);
/// A lease of a queue lasts for the request timeout plus this margin. Leases are renewed long before
/// they expire.
pub const LEASE_MARGIN: Duration = Duration::from_secs(15);
/// How long Meta (`network_a`), TikTok (`network_c`) and OpenAI Ads (`network_d`) remember a
/// deduplication id.
pub const DEDUP_WINDOW: Duration = Duration::from_hours(48);

impl Network {
    /// Returns how far an event's time may be ahead of the network's clock.
    pub const fn lead_max(self) -> Duration {
        match self {
            Self::A | Self::B | Self::C => Duration::from_mins(1),
            Self::D => Duration::from_mins(10),
        }
    }

    /// Returns how long the network remembers a deduplication id; `None` means for ever.
    pub const fn dedup_window(self) -> Option<Duration> {
        match self {
            Self::A | Self::C | Self::D => Some(DEDUP_WINDOW),
            Self::B => None,
        }
    }

    /// Returns the batch size. It is below the network's limit, because one bad event causes the
    /// whole batch to be rejected.
    pub const fn batch_max(self) -> usize {
        match self {
            Self::A | Self::C => 100,
            Self::B => 500,
            Self::D => 50,
        }
    }

    /// Returns the request timeout.
    pub const fn request_timeout(self) -> Duration {
        match self {
            Self::A | Self::C | Self::D => Duration::from_secs(10),
            Self::B => Duration::from_secs(30),
        }
    }
}

/// Returns the maximum age of this integration's events. For `network_a` and `network_d` the
/// operator can only lower the default.
pub fn age_max(integration: &Integration) -> Duration {
    let hours = match integration.settings.get("maxEventAge") {
        Some(SettingValue::Number(hours)) => u64::try_from(*hours).ok(),
        _ => None,
    };
    let wanted = hours.map_or(AGE_MAX, Duration::from_hours);
    match integration.network {
        Network::A | Network::D => wanted.min(AGE_MAX),
        Network::B | Network::C => wanted,
    }
}

/// Returns the event time to send to Google Ads (`network_b`) with the event's click. Google Ads
/// does not accept an event time before the click, so the later of the two times is sent. Returns
/// `None` if the click is too late to have caused the event.
pub fn conversion_time_with_click(
    event_time: Timestamp,
    clicked_at: Timestamp,
) -> Option<Timestamp> {
    let click_precedes = clicked_at <= event_time.plus(CLOCK_SKEW_MAX);
    click_precedes.then(|| event_time.max(clicked_at))
}

/// Returns when an event expires: a safety margin before the network would reject it.
pub fn expires_at(
    integration: &Integration,
    occurred_at: Timestamp,
    clicked_at: Option<Timestamp>,
) -> Timestamp {
    let by_event = occurred_at.plus(age_max(integration).saturating_sub(AGE_MARGIN));
    match (integration.network, clicked_at) {
        (Network::B, Some(clicked_at)) => {
            by_event.min(clicked_at.plus(CLICK_AGE_MAX.saturating_sub(AGE_MARGIN)))
        }
        _ => by_event,
    }
}

/// Returns the time from which the network accepts an event with this event time.
pub fn sendable_from(network: Network, occurred_at: Timestamp) -> Timestamp {
    let lead = i64::try_from(network.lead_max().as_millis()).unwrap_or(0);
    Timestamp::from_millis(occurred_at.as_millis().saturating_sub(lead))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::id::AppId;
    use rstest::rstest;

    fn with_age(network: Network, hours: Option<i64>) -> Integration {
        let mut integration = Integration::new(AppId::from_bytes([1; 16]), network);
        if let Some(hours) = hours {
            let value = SettingValue::Number(hours);
            integration.settings.insert("maxEventAge".to_owned(), value);
        }
        integration
    }

    #[rstest]
    #[case::seven_days(Network::A, None, 168)]
    #[case::narrowed(Network::A, Some(24), 24)]
    #[case::a_never_longer(Network::A, Some(500), 168)]
    #[case::d_never_longer(Network::D, Some(500), 168)]
    #[case::b_longer(Network::B, Some(500), 500)]
    #[case::c_longer(Network::C, Some(500), 500)]
    fn maximum_event_ages(
        #[case] network: Network,
        #[case] hours: Option<i64>,
        #[case] expected: u64,
    ) {
        let age = age_max(&with_age(network, hours));
        assert_eq!(age, Duration::from_hours(expected));
    }

    #[rstest]
    #[case::after_the_click(0, Some(1_000_000))]
    #[case::a_clock_behind(1_000_001, Some(1_000_001))]
    #[case::ten_minutes_behind(1_600_000, Some(1_600_000))]
    #[case::further_behind(1_600_001, None)]
    fn a_conversion_is_not_earlier_than_its_click(
        #[case] clicked: i64,
        #[case] expected: Option<i64>,
    ) {
        let event_time = Timestamp::from_millis(1_000_000);
        let with_click = conversion_time_with_click(event_time, Timestamp::from_millis(clicked));
        assert_eq!(with_click, expected.map(Timestamp::from_millis));
    }

    #[test]
    fn an_old_click_shortens_expiry_at_network_b() {
        let b = with_age(Network::B, None);
        let hour = |hours: i64| Timestamp::from_millis(hours * 3_600_000);
        let margin = 600_000;
        let end = expires_at(&b, hour(2_160), Some(hour(2_000))).as_millis();
        assert_eq!(end, hour(2_160 + 168).as_millis() - margin);
        let end = expires_at(&b, hour(2_160), Some(hour(1))).as_millis();
        assert_eq!(end, hour(1 + 2_160).as_millis() - margin);
    }

    #[rstest]
    #[case(Network::A, 60_000)]
    #[case(Network::D, 600_000)]
    fn early_events_wait(#[case] network: Network, #[case] lead: i64) {
        let at = sendable_from(network, Timestamp::from_millis(1_000_000));
        assert_eq!(at.as_millis(), 1_000_000 - lead);
    }
}
