//! What each network puts up with: how old, how early, how many.

use crate::integration::{Integration, Network, SettingValue};
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// How old an event may be when a network hears of it, unless the operator says otherwise.
pub const AGE_MAX: Duration = Duration::from_hours(7 * 24);
/// The oldest click that `network_b` takes.
const CLICK_AGE_MAX: Duration = Duration::from_hours(90 * 24);
/// By how much clocks differ. An event that is still earlier than a click was not led to by it.
const CLOCK_SKEW_MAX: Duration = Duration::from_mins(10);
/// What is left of an event's time must be enough for the request to arrive.
pub const AGE_MARGIN: Duration = Duration::from_mins(10);
/// An event this far ahead of its time is never sent.
pub const LEAD_TERMINAL: Duration = Duration::from_hours(24);
/// How long `network_a`, `network_c` and `network_d` know an id again.
pub const DEDUP_WINDOW: Duration = Duration::from_hours(48);

impl Network {
    /// How far ahead of the network's clock an event's time may be.
    pub const fn lead_max(self) -> Duration {
        match self {
            Self::A | Self::B | Self::C => Duration::from_mins(1),
            Self::D => Duration::from_mins(10),
        }
    }

    /// How long it knows an id again; nothing: for ever.
    pub const fn dedup_window(self) -> Option<Duration> {
        match self {
            Self::A | Self::C | Self::D => Some(DEDUP_WINDOW),
            Self::B => None,
        }
    }

    /// Events of one request. It refuses all of them for one that is bad, so fewer than it would take.
    pub const fn batch_max(self) -> usize {
        match self {
            Self::A | Self::C => 100,
            Self::B => 500,
            Self::D => 50,
        }
    }

    /// How long a request may take.
    pub const fn request_timeout(self) -> Duration {
        match self {
            Self::A | Self::C | Self::D => Duration::from_secs(10),
            Self::B => Duration::from_secs(30),
        }
    }
}

/// How old an event of this integration may be. Two networks have a limit of their own, which the operator can only
/// narrow.
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

/// The time of an event that `network_b` hears of with its click, which it must not precede; nothing where the click
/// cannot have led to it.
pub fn conversion_time_with_click(told_at: Timestamp, clicked_at: Timestamp) -> Option<Timestamp> {
    let may_have_led = clicked_at <= told_at.plus(CLOCK_SKEW_MAX);
    may_have_led.then(|| told_at.max(clicked_at))
}

/// When it is too late to send an event: the margin before the network would refuse it.
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

/// When an event's time is near enough to be sent.
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
    #[case::a_never_more(Network::A, Some(500), 168)]
    #[case::d_never_more(Network::D, Some(500), 168)]
    #[case::b_upwards(Network::B, Some(500), 500)]
    #[case::c_upwards(Network::C, Some(500), 500)]
    fn ages(#[case] network: Network, #[case] hours: Option<i64>, #[case] expected: u64) {
        let age = age_max(&with_age(network, hours));
        assert_eq!(age, Duration::from_hours(expected));
    }

    #[rstest]
    #[case::after_the_click(0, Some(1_000_000))]
    #[case::a_clock_behind(1_000_001, Some(1_000_001))]
    #[case::ten_minutes_behind(1_600_000, Some(1_600_000))]
    #[case::further_behind(1_600_001, None)]
    fn an_event_is_not_told_before_its_click(#[case] clicked: i64, #[case] expected: Option<i64>) {
        let told = Timestamp::from_millis(1_000_000);
        let with_click = conversion_time_with_click(told, Timestamp::from_millis(clicked));
        assert_eq!(with_click, expected.map(Timestamp::from_millis));
    }

    #[test]
    fn a_click_too_old_for_network_b_ends_it_earlier() {
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
