//! Matching by likeness: how like the circumstances of a click and of a first open are.
//!
//! Points are given for what is known of both and equal. What is unknown of either gives none and speaks
//! against nothing: a browser that hides its version is not another device. A version or a model that is
//! known of both and differs excludes the click, whatever else agrees.

use super::decision::Signals;
use super::evidence::DeviceFingerprint;
use crate::click::Click;

/// Clicks from one address that are compared; more of them means that the address is shared.
pub const ADDRESS_CANDIDATES_MAX: usize = 20;

/// Points for the address; nothing is compared that does not have it.
const ADDRESS_POINTS: u8 = 40;
/// Points for the version of the operating system.
const OS_VERSION_POINTS: u8 = 20;
/// Points for each of model, time zone, language and screen.
const TRAIT_POINTS: u8 = 10;
/// Points that are enough. A plain redirect shows address, version and language: all three must agree.
pub(super) const SCORE_MIN: u8 = 70;
/// Points by which the best must be ahead of the next. Less would be a coin's toss.
pub(super) const MARGIN_MIN: u8 = 10;

/// Hours up to which a click may claim an install by likeness, whatever the app says: addresses move on.
pub(super) const WINDOW_HOURS_MAX: i64 = 24;

const HOUR_MILLIS: i64 = 60 * 60 * 1_000;
/// Confidence by age: under so many hours, so many hundredths.
const CONFIDENCE_BY_AGE: [(i64, u8); 2] = [(1, 85), (6, 75)];
/// Confidence in anything older.
const CONFIDENCE_OLDEST: u8 = 65;
/// What each further candidate on the address takes from it.
const CONFIDENCE_PER_FURTHER: u8 = 15;
/// What is left at least.
const CONFIDENCE_MIN: u8 = 30;

/// Languages that Java still calls by names which browsers gave up decades ago.
const RENAMED_LANGUAGES: [(&str, &str); 3] = [("iw", "he"), ("in", "id"), ("ji", "yi")];

/// How like a click is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MatchScore {
    /// The points of each signal.
    pub(super) signals: Signals,
    /// Their sum; nothing when the click is excluded.
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
    let excluded = os_version == Some(0) || model == Some(0);
    MatchScore {
        signals,
        score: (!excluded).then(|| sum(signals)),
    }
}

/// How sure a match is, in hundredths.
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

/// The first two numbers of a version: the SDK reports more of it than a browser does. A name in front of
/// them is passed over, and a version without a second number has none but zero.
fn major_minor(version: &str) -> Option<(u32, u32)> {
    let digits = version.trim_start_matches(|c: char| !c.is_ascii_digit());
    let mut numbers = digits
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse().ok());
    let major = numbers.next()??;
    Some((major, numbers.next().flatten().unwrap_or(0)))
}

/// The language of a locale or a language tag, without its region.
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
    fn versions_are_compared_by_their_first_two_numbers(
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
    fn what_is_no_version_is_unknown(#[case] text: &str) {
        assert_eq!(major_minor(text), None);
    }

    #[rstest]
    #[case::region("en_US", "en")]
    #[case::script("zh-Hant-TW", "zh")]
    #[case::apples_appendix("en@rg=dezzzz", "en")]
    #[case::case_is_nothing("DE", "de")]
    #[case::hebrew_on_java("iw_IL", "he")]
    #[case::indonesian_on_java("in_ID", "id")]
    fn a_language_has_no_region(#[case] tag: &str, #[case] expected: &str) {
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
    #[case::never_less_than_the_least(0, 19, 30)]
    fn confidence_falls_with_age_and_company(
        #[case] age_millis: i64,
        #[case] further: usize,
        #[case] expected: u8,
    ) {
        assert_eq!(confidence(age_millis, further), expected);
    }
}
