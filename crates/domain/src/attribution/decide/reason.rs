//! Explanation of a decision in one plain sentence.
//!
//! Written for people who buy ads. No sentence contains an IP address, a device id or a click id,
//! because explanations are shown, copied and mailed.

use super::fraud::{Contradiction, STORE_TAP_EARLY_SECONDS, STORE_TAP_LATE_SECONDS};
use crate::attribution::ad_services::AdServices;
use crate::attribution::evidence::ClickIdSource;
use crate::attribution::improve::PENDING_CLICK_TIMEOUT;
use crate::attribution::probabilistic::ADDRESS_CANDIDATES_MAX;
use crate::attribution::referrer::Referrer;
use crate::attribution::{Evidence, Rejection, Signals};
use crate::device::Platform;

const MINUTE_SECONDS: i64 = 60;
const HOUR_SECONDS: i64 = 60 * MINUTE_SECONDS;
const DAY_HOURS: i64 = 24;
/// Number of hours from which durations are shown in days.
const DAYS_FROM_HOURS: i64 = 48;

pub(super) const BAD_TOKEN: &str = "The click id sent with this install is invalid.";
pub(super) const FOREIGN_CLICK: &str =
    "The click id sent with this install belongs to another app.";
pub(super) const TAP: &str = "Apple reports that a tap on an Apple Ads ad led to this install.";
pub(super) const VIEW: &str =
    "Apple reports a view of an Apple Ads ad before this install, and no tap.";
pub(super) const APPLE_TOO_LATE: &str =
    "The ad named by Apple cannot have led to this install: it was shown after the first open.";

/// Explains that the delivered click is not stored yet.
pub(super) fn pending_click() -> String {
    let hours = PENDING_CLICK_TIMEOUT.as_secs() / HOUR_SECONDS.unsigned_abs();
    format!(
        "The click reported by the device is not stored yet; Tributary waits up to {hours} hours for it."
    )
}

/// Explains that the delivered click was never stored.
pub(crate) fn click_never_stored() -> String {
    "The click reported by the device was never stored, so its id counts as invalid.".to_owned()
}

/// Explains the credit for a delivered click id.
pub(super) fn delivered(
    source: ClickIdSource,
    age_seconds: i64,
    install: &str,
    contradiction: Option<Contradiction>,
) -> String {
    let who = match source {
        ClickIdSource::Referrer => "The Play Store",
        ClickIdSource::Client => "The app",
        ClickIdSource::AppLink => {
            return "A tap on this link opened the app for the first time.".to_owned();
        }
    };
    match contradiction {
        None => format!(
            "{who} passed on the id of a click made {} before {install}.",
            ago(age_seconds)
        ),
        Some(contradiction) => {
            let why = contradiction_text(contradiction);
            format!("{who} passed on the id of a click; it counts but is flagged, because {why}.")
        }
    }
}

/// Explains the rejection of a delivered click, or of an ad that the referrer names.
pub(super) fn rejected(
    subject: &str,
    rejection: Rejection,
    contradiction: Option<Contradiction>,
    window_hours: i64,
) -> String {
    match (rejection, contradiction) {
        (Rejection::Bot, _) => {
            format!("{subject} was made by a bot or a link preview, not by a person.")
        }
        (Rejection::TestLink, _) => {
            format!("{subject} is on a test link, whose clicks never count.")
        }
        (Rejection::DuplicateClick, _) => {
            format!("{subject} is already credited with another install.")
        }
        (Rejection::Implausible, Some(contradiction)) => {
            format!(
                "{subject} cannot have led to this install: {}.",
                contradiction_text(contradiction)
            )
        }
        _ => format!(
            "{subject} is older than the click window of {}.",
            window(window_hours)
        ),
    }
}

/// Explains the credit for a third-party referrer.
pub(super) fn third_party(referrer: &Referrer, contradiction: Option<Contradiction>) -> String {
    let what = match referrer {
        Referrer::Google(_) => {
            "The Play Store names a Google Ads (network_b) ad that used none of this app's links"
        }
        Referrer::Meta { campaign: None, .. } => {
            "The Play Store names a Meta (network_a) ad that used none of this app's links; its \
             campaign could not be decrypted"
        }
        Referrer::Meta { .. } => {
            "The Play Store names a Meta (network_a) ad that used none of this app's links"
        }
        _ => "The Play Store names a campaign that used none of this app's links",
    };
    contradiction.map_or_else(
        || format!("{what}."),
        |contradiction| {
            format!(
                "{what}; it counts but is flagged, because {}.",
                contradiction_text(contradiction)
            )
        },
    )
}

/// Explains the credit for a click with the device's advertising id.
pub(super) fn advertising_id(
    acceptable: usize,
    age_seconds: i64,
    install: &str,
    contradiction: Option<Contradiction>,
) -> String {
    let which = if acceptable > 1 {
        format!("The latest of {acceptable} clicks with this device's advertising id was made")
    } else {
        "A click with this device's advertising id was made".to_owned()
    };
    match contradiction {
        None => format!("{which} {} before {install}.", ago(age_seconds)),
        Some(contradiction) => {
            format!(
                "{which}; it counts but is flagged, because {}.",
                contradiction_text(contradiction)
            )
        }
    }
}

/// Explains why the latest click with the device's advertising id was rejected.
pub(super) fn advertising_id_rejected(rejection: Rejection, window_hours: i64) -> String {
    match rejection {
        Rejection::Bot => "the click with its advertising id was made by a bot".to_owned(),
        Rejection::TestLink => "the click with its advertising id is on a test link".to_owned(),
        Rejection::DuplicateClick => {
            "the click with its advertising id is already credited with another install".to_owned()
        }
        Rejection::Implausible => "its click does not fit the time of the install".to_owned(),
        _ => format!(
            "the click with its advertising id is older than {}",
            window(window_hours)
        ),
    }
}

/// Explains the credit for a probabilistic match.
pub(super) fn probabilistic(candidates: usize, window_hours: i64, signals: Signals) -> String {
    let named = [
        (signals.os_version, "OS version"),
        (signals.model, "model"),
        (signals.timezone, "time zone"),
        (signals.language, "language"),
        (signals.screen, "screen"),
    ];
    let matching: Vec<_> = named
        .into_iter()
        .filter_map(|(points, name)| points.filter(|points| *points > 0).map(|_| name))
        .collect();
    let which = match candidates {
        0 | 1 => "Only click from this address".to_owned(),
        many => format!("Best match of {many} clicks from this address"),
    };
    let within = hours(window_hours);
    format!("{which} within {within}; {} match.", listed(&matching))
}

/// Explains that probabilistic matching is off.
pub(super) fn probabilistic_disabled(clicks: usize, platform: Platform) -> String {
    let system = match platform {
        Platform::Ios => "iOS",
        Platform::Android => "Android",
        Platform::Web => "the web",
    };
    let came = counted(clicks, "click");
    format!("{came} came from its address, but probabilistic matching is off for {system}")
}

/// Explains that too many clicks share the address.
pub(super) fn shared_address(window_hours: i64) -> String {
    let within = hours(window_hours);
    format!(
        "more than {ADDRESS_CANDIDATES_MAX} clicks came from its address within {within}, so the \
         address is shared"
    )
}

/// Explains that several clicks match equally well.
pub(super) fn ambiguous(clicks: usize) -> String {
    format!(
        "{} from its address match equally well",
        counted(clicks, "click")
    )
}

/// Explains that every click came from another device.
pub(super) fn another_device(clicks: usize) -> String {
    match clicks {
        1 => "the click from its address was made on another model or OS version".to_owned(),
        _ => {
            format!("the {clicks} clicks from its address were made on other models or OS versions")
        }
    }
}

/// Explains why the latest click from the address was rejected.
pub(super) fn same_address_rejected(rejection: Rejection, window_hours: i64) -> String {
    match rejection {
        Rejection::Bot => "the click from its address was made by a bot".to_owned(),
        Rejection::TestLink => "the click from its address is on a test link".to_owned(),
        Rejection::DuplicateClick => {
            "the click from its address is already credited with another install".to_owned()
        }
        Rejection::Implausible => {
            "the click from its address does not fit the time of the install".to_owned()
        }
        _ => format!(
            "the click from its address is older than {}",
            hours(window_hours)
        ),
    }
}

/// Explains that no click matches well enough.
pub(super) fn score_too_low(clicks: usize) -> String {
    match clicks {
        1 => "the click from its address does not match well enough".to_owned(),
        _ => format!("none of the {clicks} clicks from its address matches well enough"),
    }
}

/// Explains that nothing matched and no claim was rejected.
pub(super) fn no_match(evidence: &Evidence, near_miss: Option<&str>) -> String {
    if let Some(miss) = near_miss {
        return format!("No click could be matched to this install: {miss}.");
    }
    let apple = match &evidence.ad_services {
        one if one.is_test_data_in(evidence.environment) => {
            Some("Apple returned test data, which does not count for a live install")
        }
        AdServices::Pending => Some("Apple has not responded yet"),
        AdServices::NotAttributed => Some("Apple has no record of an ad"),
        AdServices::Invalid => Some("Apple rejected this device's token"),
        AdServices::Expired => Some("Apple did not respond before the token expired"),
        _ => None,
    };
    let store = match &evidence.referrer {
        Some(Referrer::Organic) => Some("the Play Store reported an organic install"),
        Some(Referrer::Other(_)) => Some("the Play Store referrer names no ad"),
        Some(Referrer::Unavailable) => Some("the Play Store referrer could not be read"),
        None if evidence.platform == Platform::Android => {
            Some("the device sent no Play Store referrer")
        }
        _ => None,
    };
    let why = apple
        .or(store)
        .unwrap_or("the device reported no click id and no store referrer");
    format!("No click was found for this install: {why}.")
}

fn contradiction_text(contradiction: Contradiction) -> String {
    match contradiction {
        Contradiction::AfterFirstOpen => "it came after the app was first opened".to_owned(),
        Contradiction::StoreTapAfterFirstOpen => {
            "the tap in the Play Store came after the app was first opened".to_owned()
        }
        Contradiction::InstallBeginAfterFirstOpen => {
            "the installation began after the app was first opened".to_owned()
        }
        Contradiction::AfterInstallBegin => "it came after the installation had begun".to_owned(),
        Contradiction::StoreTapAfterInstallBegin => {
            "the tap in the Play Store came after the installation had begun".to_owned()
        }
        Contradiction::StoreTapBeforeClick => {
            let minutes = STORE_TAP_EARLY_SECONDS / MINUTE_SECONDS;
            format!("the tap in the Play Store came more than {minutes} minutes before the click")
        }
        Contradiction::StoreTapLongAfterClick => {
            let minutes = STORE_TAP_LATE_SECONDS / MINUTE_SECONDS;
            format!("the tap in the Play Store came more than {minutes} minutes after the click")
        }
    }
}

/// Formats a duration in its largest useful unit.
fn ago(seconds: i64) -> String {
    let (count, unit) = match seconds {
        ..MINUTE_SECONDS => (seconds.max(0), "second"),
        MINUTE_SECONDS..HOUR_SECONDS => (seconds / MINUTE_SECONDS, "minute"),
        _ if seconds < DAYS_FROM_HOURS * HOUR_SECONDS => (seconds / HOUR_SECONDS, "hour"),
        _ => (seconds / (DAY_HOURS * HOUR_SECONDS), "day"),
    };
    counted(usize::try_from(count).unwrap_or(usize::MAX), unit)
}

/// Formats a window exactly.
fn window(window_hours: i64) -> String {
    if window_hours >= DAYS_FROM_HOURS && window_hours % DAY_HOURS == 0 {
        return counted(
            usize::try_from(window_hours / DAY_HOURS).unwrap_or(0),
            "day",
        );
    }
    hours(window_hours)
}

fn hours(count: i64) -> String {
    counted(usize::try_from(count).unwrap_or(0), "hour")
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

fn listed(names: &[&str]) -> String {
    match names {
        [] => "nothing else".to_owned(),
        [only] => (*only).to_owned(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}
