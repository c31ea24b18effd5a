//! Why, in one plain sentence.
//!
//! For a person who pays for ads, not for one who wrote this. No sentence names an address, a device or a
//! click: explanations are shown, copied and mailed.

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
/// Hours from which a time is told in days.
const DAYS_FROM_HOURS: i64 = 48;

pub(super) const BAD_TOKEN: &str = "The click id that this install delivered is not genuine.";
pub(super) const FOREIGN_CLICK: &str =
    "The click id that this install delivered belongs to another app.";
pub(super) const TAP: &str = "Apple reports that a tap on an Apple Ads ad led to this install.";
pub(super) const VIEW: &str =
    "Apple reports that an Apple Ads ad was seen before this install, and no tap is known.";
pub(super) const APPLE_TOO_LATE: &str =
    "The ad that Apple names cannot have led to this install: it was shown after the first open.";

/// The device names a click that is not stored yet.
pub(super) fn pending_click() -> String {
    let hours = PENDING_CLICK_TIMEOUT.as_secs() / HOUR_SECONDS.unsigned_abs();
    format!(
        "The click that this install names is not stored yet; it is looked for during {hours} hours."
    )
}

/// The device named a click that was never stored.
pub(crate) fn click_never_stored() -> String {
    "The click that this install names was never stored, so its id counts as not genuine."
        .to_owned()
}

/// The device named a click, and it won.
pub(super) fn delivered(
    by: ClickIdSource,
    age_seconds: i64,
    against: Option<Contradiction>,
) -> String {
    let who = match by {
        ClickIdSource::Referrer => "The Play Store",
        ClickIdSource::Client => "The app",
        ClickIdSource::AppLink => {
            return "A tap on this link opened the app for the first time.".to_owned();
        }
    };
    match against {
        None => format!(
            "{who} handed over the id of a click, made {} before the install.",
            ago(age_seconds)
        ),
        Some(against) => {
            let why = contradiction(against);
            format!("{who} handed over the id of a click; it counts but is marked, because {why}.")
        }
    }
}

/// The device named a click, or an ad, and it was refused.
pub(super) fn rejected(
    subject: &str,
    rejection: Rejection,
    against: Option<Contradiction>,
    window_hours: i64,
) -> String {
    match (rejection, against) {
        (Rejection::Bot, _) => {
            format!("{subject} was made by a crawler or a preview, not by a person.")
        }
        (Rejection::DuplicateClick, _) => format!("{subject} has led to another install already."),
        (Rejection::Implausible, Some(against)) => {
            format!(
                "{subject} cannot have led to this install: {}.",
                contradiction(against)
            )
        }
        _ => format!(
            "{subject} is older than the {} for which a click counts.",
            window(window_hours)
        ),
    }
}

/// A third-party referrer won.
pub(super) fn third_party(referrer: &Referrer, against: Option<Contradiction>) -> String {
    let what = match referrer {
        Referrer::Google(_) => {
            "The Play Store names an ad of network_b that did not lead through a link of this app"
        }
        Referrer::Meta { campaign: None, .. } => {
            "The Play Store names an ad of network_a that did not lead through a link of this app; its campaign could not be read"
        }
        Referrer::Meta { .. } => {
            "The Play Store names an ad of network_a that did not lead through a link of this app"
        }
        _ => "The Play Store names a campaign that did not lead through a link of this app",
    };
    against.map_or_else(
        || format!("{what}."),
        |against| {
            format!(
                "{what}; it counts but is marked, because {}.",
                contradiction(against)
            )
        },
    )
}

/// A click with the device's advertising id won.
pub(super) fn advertising_id(
    acceptable: usize,
    age_seconds: i64,
    against: Option<Contradiction>,
) -> String {
    let which = if acceptable > 1 {
        format!("The latest of {acceptable} clicks with this device's advertising id was made")
    } else {
        "A click with this device's advertising id was made".to_owned()
    };
    match against {
        None => format!("{which} {} before the install.", ago(age_seconds)),
        Some(against) => {
            format!(
                "{which}; it counts but is marked, because {}.",
                contradiction(against)
            )
        }
    }
}

/// The clicks with the device's advertising id were all refused; the latest for this.
pub(super) fn advertising_id_rejected(rejection: Rejection, window_hours: i64) -> String {
    match rejection {
        Rejection::Bot => "the click with its advertising id was no person's".to_owned(),
        Rejection::DuplicateClick => {
            "the click with its advertising id has led to another install".to_owned()
        }
        Rejection::Implausible => {
            "the click with its advertising id came too late to lead to it".to_owned()
        }
        _ => format!(
            "the click with its advertising id is older than {}",
            window(window_hours)
        ),
    }
}

/// A click won by likeness.
pub(super) fn probabilistic(candidates: usize, window_hours: i64, signals: Signals) -> String {
    let named = [
        (signals.os_version, "OS version"),
        (signals.model, "model"),
        (signals.timezone, "time zone"),
        (signals.language, "language"),
        (signals.screen, "screen"),
    ];
    let agreeing: Vec<_> = named
        .into_iter()
        .filter_map(|(points, name)| points.filter(|points| *points > 0).map(|_| name))
        .collect();
    let which = match candidates {
        0 | 1 => "Only click from this address".to_owned(),
        many => format!("Best fitting of {many} clicks from this address"),
    };
    let within = hours(window_hours);
    format!("{which} within {within}; {} agree.", listed(&agreeing))
}

/// Likeness is switched off.
pub(super) fn probabilistic_disabled(clicks: usize, platform: Platform) -> String {
    let system = match platform {
        Platform::Ios => "iOS",
        Platform::Android => "Android",
        Platform::Web => "the web",
    };
    let came = counted(clicks, "click");
    format!("{came} came from its address, but matching by likeness is switched off for {system}")
}

/// Too many clicks came from the address.
pub(super) fn shared_address(window_hours: i64) -> String {
    let within = hours(window_hours);
    format!(
        "more than {ADDRESS_CANDIDATES_MAX} clicks came from its address within {within}, so many people share it"
    )
}

/// Several clicks are as like.
pub(super) fn ambiguous(clicks: usize) -> String {
    format!(
        "{} from its address fit it equally well",
        counted(clicks, "click")
    )
}

/// Every click is known to be another device's.
pub(super) fn another_device(clicks: usize) -> String {
    match clicks {
        1 => "the click from its address was made on another model or OS version".to_owned(),
        _ => {
            format!("the {clicks} clicks from its address were made on other models or OS versions")
        }
    }
}

/// The clicks from the address could not have led to the install; the latest for this.
pub(super) fn same_address_rejected(rejection: Rejection, window_hours: i64) -> String {
    match rejection {
        Rejection::Bot => "the click from its address was no person's".to_owned(),
        Rejection::DuplicateClick => {
            "the click from its address has led to another install".to_owned()
        }
        Rejection::Implausible => {
            "the click from its address came too late to lead to it".to_owned()
        }
        _ => format!(
            "the click from its address is older than {}",
            hours(window_hours)
        ),
    }
}

/// No click is like enough.
pub(super) fn score_too_low(clicks: usize) -> String {
    match clicks {
        1 => "the click from its address does not fit it well enough".to_owned(),
        _ => format!("none of the {clicks} clicks from its address fits it well enough"),
    }
}

/// Nothing matched, and nothing was refused.
pub(super) fn no_match(evidence: &Evidence, near_miss: Option<&str>) -> String {
    if let Some(miss) = near_miss {
        return format!("No click could be matched to this install: {miss}.");
    }
    let apple = match &evidence.ad_services {
        one if one.is_test_data_in(evidence.environment) => {
            Some("Apple answered with test data, which does not count for a live install")
        }
        AdServices::Pending => Some("Apple has not answered yet"),
        AdServices::NotAttributed => Some("Apple has no record of an ad"),
        AdServices::Invalid => Some("Apple did not recognise the token of this device"),
        AdServices::Expired => Some("Apple could not be asked in time"),
        _ => None,
    };
    let store = match &evidence.referrer {
        Some(Referrer::Organic) => Some("the Play Store reported an organic install"),
        Some(Referrer::Other(_)) => Some("the referrer of the Play Store names no ad"),
        Some(Referrer::Unavailable) => Some("the referrer of the Play Store could not be read"),
        None if evidence.platform == Platform::Android => {
            Some("the device sent no referrer of the Play Store")
        }
        _ => None,
    };
    let why = apple
        .or(store)
        .unwrap_or("the device showed no sign of one");
    format!("No click was found for this install: {why}.")
}

fn contradiction(against: Contradiction) -> String {
    match against {
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

/// A length of time, in its largest unit that says something.
fn ago(seconds: i64) -> String {
    let (count, unit) = match seconds {
        ..MINUTE_SECONDS => (seconds.max(0), "second"),
        MINUTE_SECONDS..HOUR_SECONDS => (seconds / MINUTE_SECONDS, "minute"),
        _ if seconds < DAYS_FROM_HOURS * HOUR_SECONDS => (seconds / HOUR_SECONDS, "hour"),
        _ => (seconds / (DAY_HOURS * HOUR_SECONDS), "day"),
    };
    counted(usize::try_from(count).unwrap_or(usize::MAX), unit)
}

/// A window, which is exact.
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
