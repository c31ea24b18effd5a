//! Probabilistic matching: scores how similar a click and a first open are.
//!
//! A signal that is known on both sides and equal adds points. A signal that is unknown on either
//! side is neutral: a browser that hides its version is not another device. A version or model that
//! is known on both sides and differs excludes the click.

use super::decision::Signals;
use super::evidence::DeviceFingerprint;
use crate::click::Click;

/// Maximum number of clicks compared per address. With more, the address counts as shared.
pub const ADDRESS_CANDIDATES_MAX: usize = 20;

/// Points for the address, which all compared clicks share.
const ADDRESS_POINTS: u8 = 40;
/// Points for the OS version.
const OS_VERSION_POINTS: u8 = 20;
/// Points for each of model, time zone, language and screen.
const TRAIT_POINTS: u8 = 10;
/// Minimum score. A plain redirect reveals address, version and language, so all three must match.
pub(super) const SCORE_MIN: u8 = 70;
/// Minimum lead over the second-best candidate. With less, the choice would be arbitrary.
pub(super) const MARGIN_MIN: u8 = 10;

/// Maximum window in hours, whatever the app configures, because addresses are reassigned.
pub(super) const WINDOW_HOURS_MAX: i64 = 24;

const HOUR_MILLIS: i64 = 60 * 60 * 1_000;
/// Confidence by the click's age: pairs of an upper bound in hours (exclusive) and the confidence
/// in percent.
const CONFIDENCE_BY_AGE: [(i64, u8); 2] = [(1, 85), (6, 75)];
/// Confidence for clicks beyond the last bound, in percent.
const CONFIDENCE_OLDEST: u8 = 65;
/// Confidence lost per further candidate from the same address.
const CONFIDENCE_PER_FURTHER: u8 = 15;
/// Minimum confidence.
const CONFIDENCE_MIN: u8 = 30;

/// Obsolete language codes that Java still uses, and their replacements.
const RENAMED_LANGUAGES: [(&str, &str); 3] = [("iw", "he"), ("in", "id"), ("ji", "yi")];

/// Similarity of a click and a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MatchScore {
    /// Points per signal.
    pub(super) signals: Signals,
    /// Sum of the points; `None` if the click is excluded.
    pub(super) score: Option<u8>,
}

/// Compares a click from the device's address with the device.
pub(super) fn compare(click: &Click, device: &DeviceFingerprint) -> MatchScore {
    let agent = &click.agent;
    let os_version = signal(
        OS_VERSION_POINTS,
        agent.os_version.as_deref().and_then(major_minor),
        device.os_version.as_deref().and_then(major_minor),
    );
    let model = signal(
        TRAIT_POINTS,
        folded(agent.model.as_ref()),
        folded(device.model.as_ref()),
    );
    let language = |text: &Option<String>| text.as_deref().and_then(language);
    let signals = Signals {
        address: Some(ADDRESS_POINTS),
        os_version,
        model,
        timezone: signal(
            TRAIT_POINTS,
            folded(click.timezone.as_ref()),
            folded(device.timezone.as_ref()),
        ),
        language: signal(
            TRAIT_POINTS,
            language(&click.language),
            language(&device.locale),
        ),
        screen: signal(TRAIT_POINTS, click.screen, device.screen),
    };
    let is_excluded = os_version == Some(0) || model == Some(0);
    MatchScore {
        signals,
        score: (!is_excluded).then(|| sum(signals)),
    }
}

/// Returns the confidence of a match, in percent.
pub(super) fn confidence(age_millis: i64, further_candidates: usize) -> u8 {
    let by_age = CONFIDENCE_BY_AGE
        .iter()
        .find(|(hours, _)| age_millis < hours * HOUR_MILLIS);
    let base = by_age.map_or(CONFIDENCE_OLDEST, |(_, hundredths)| *hundredths);
    let further = u8::try_from(further_candidates).unwrap_or(u8::MAX);
    base.saturating_sub(further.saturating_mul(CONFIDENCE_PER_FURTHER))
        .max(CONFIDENCE_MIN)
}

fn signal<T: PartialEq>(points: u8, click: Option<T>, device: Option<T>) -> Option<u8> {
    click
        .zip(device)
        .map(|(click, device)| if click == device { points } else { 0 })
}

fn sum(signals: Signals) -> u8 {
    let Signals {
        address,
        os_version,
        model,
        timezone,
        language,
        screen,
    } = signals;
    [address, os_version, model, timezone, language, screen]
        .into_iter()
        .flatten()
        .sum()
}

fn folded(text: Option<&String>) -> Option<String> {
    let text = text?.trim();
    (!text.is_empty()).then(|| text.to_lowercase())
}

/// Returns the major and minor version, because browsers often report no more. Skips a leading
/// name. A missing minor version is zero.
fn major_minor(version: &str) -> Option<(u32, u32)> {
    let digits = version.trim_start_matches(|c: char| !c.is_ascii_digit());
    let mut numbers = digits
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse().ok());
    let major = numbers.next()??;
    Some((major, numbers.next().flatten().unwrap_or(0)))
}

/// Returns the language of a locale or language tag, without its region.
fn language(tag: &str) -> Option<String> {
    let first = tag
        .trim()
        .split(['_', '-', '@', '.'])
        .next()?
        .to_lowercase();
    let renamed = RENAMED_LANGUAGES.iter().find(|(old, _)| *old == first);
    let language = renamed.map_or(first, |(_, new)| (*new).to_owned());
    (!language.is_empty()).then_some(language)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::patch_is_ignored("17.5.1", "17.5", true)]
    #[case::minor_differs("17.5", "17.6", false)]
    #[case::no_minor_is_zero("14", "14.0.0", true)]
    #[case::not_compared_as_text("18.1", "18.10", false)]
    #[case::a_name_in_front("Android 14", "14", true)]
    fn compares_versions_by_major_and_minor(
        #[case] one: &str,
        #[case] other: &str,
        #[case] equal: bool,
    ) {
        assert_eq!(major_minor(one) == major_minor(other), equal);
    }

    #[rstest]
    #[case::no_number("Tiramisu")]
    #[case::empty("")]
    #[case::no_such_number("99999999999999999999")]
    fn anything_else_is_an_unknown_version(#[case] text: &str) {
        assert_eq!(major_minor(text), None);
    }

    #[rstest]
    #[case::region("en_US", "en")]
    #[case::script("zh-Hant-TW", "zh")]
    #[case::apples_suffix("en@rg=dezzzz", "en")]
    #[case::case_is_ignored("DE", "de")]
    #[case::hebrew_on_java("iw_IL", "he")]
    #[case::indonesian_on_java("in_ID", "id")]
    fn drops_the_region_of_a_language(#[case] tag: &str, #[case] expected: &str) {
        assert_eq!(language(tag).as_deref(), Some(expected));
    }

    #[rstest]
    #[case::fresh(0, 0, 85)]
    #[case::just_under_an_hour(HOUR_MILLIS - 1, 0, 85)]
    #[case::an_hour(HOUR_MILLIS, 0, 75)]
    #[case::six_hours(6 * HOUR_MILLIS, 0, 65)]
    #[case::a_day(24 * HOUR_MILLIS, 0, 65)]
    #[case::one_further(0, 1, 70)]
    #[case::three_further(0, 3, 40)]
    #[case::never_below_the_minimum(0, 19, 30)]
    fn confidence_falls_with_age_and_further_candidates(
        #[case] age_millis: i64,
        #[case] further: usize,
        #[case] expected: u8,
    ) {
        assert_eq!(confidence(age_millis, further), expected);
    }
}
