//! Meta's `fbc` cookie value for a click.

use crate::facts::ConversionFacts;
use std::time::Duration;
use tributary_domain::vocabulary::time::Timestamp;

/// Meta discards clicks older than this.
const AGE_MAX: Duration = Duration::from_hours(90 * 24);
/// Number of digits in a Unix time in milliseconds, from 2001 to 2286.
const MILLIS_DIGITS: usize = 13;
/// Maximum length of a click id in an `fbc`.
const ID_CHARS_MAX: usize = 512;
/// Lengths of the appendix that newer Meta tools add to the click id.
const APPENDIX_CHARS: [usize; 2] = [8, 2];

/// Returns a conversion's `fbc`: the landing page's own value if it is valid and for the same
/// click, otherwise a value built from the click id. `None` without a click id.
pub(super) fn fbc(facts: ConversionFacts<'_>) -> Option<String> {
    let fbclid = facts.click_id("fbclid");
    let occurred_at = facts.0.event.conversion_time();
    let fresh = |made_at: Timestamp| occurred_at.since(made_at) <= AGE_MAX;
    let from_page = facts
        .click()
        .and_then(|click| click.captured.browser_ids.fbc.as_deref())
        .and_then(LandingPageFbc::read);
    if let Some(own) = from_page
        && fbclid.is_none_or(|fbclid| own.is_of(fbclid))
    {
        return fresh(own.made_at).then(|| own.text.to_owned());
    }
    let first_seen = first_seen(facts)?;
    let fbclid = fbclid.filter(|_| fresh(first_seen))?;
    // Index 1 is for values created on a server.
    Some(format!("fb.1.{}.{fbclid}", first_seen.as_millis()))
}

/// Returns when the click id was first seen: at the click, or with the device's first call.
fn first_seen(facts: ConversionFacts<'_>) -> Option<Timestamp> {
    let of_click = facts
        .click()
        .filter(|click| click.captured.click_ids.fbclid.is_some())
        .map(|click| click.clicked_at);
    let of_device = facts.0.device.as_ref().map(|device| device.first_seen_at);
    of_click.or(of_device)
}

/// An `fbc` from a landing page.
struct LandingPageFbc<'a> {
    text: &'a str,
    made_at: Timestamp,
    id: &'a str,
}

impl<'a> LandingPageFbc<'a> {
    /// Parses `fb.<index>.<milliseconds>.<click id>` strictly.
    fn read(text: &'a str) -> Option<Self> {
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let mut parts = text.splitn(4, '.');
        let (prefix, index) = (parts.next()?, parts.next()?);
        let (millis, id) = (parts.next()?, parts.next()?);
        let id_fits = (1..=ID_CHARS_MAX).contains(&id.len())
            && id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_.%-".contains(&byte));
        let sound = prefix == "fb"
            && (1..=2).contains(&index.len())
            && digits(index)
            && millis.len() == MILLIS_DIGITS
            && digits(millis)
            && id_fits;
        let made_at = Timestamp::from_millis(millis.parse().ok()?);
        sound.then_some(Self { text, made_at, id })
    }

    /// Returns whether this `fbc` is for the click id, with or without an appendix.
    fn is_of(&self, fbclid: &str) -> bool {
        match self.id.strip_prefix(fbclid) {
            Some("") => true,
            Some(rest) => rest
                .strip_prefix('.')
                .is_some_and(|appendix| APPENDIX_CHARS.contains(&appendix.len())),
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{CLICKED_AT, device, web_event};
    use rstest::rstest;

    const MADE: &str = "fb.1.1794561330250.IwAR2kZ8q_AbCd-1";

    #[rstest]
    #[case::made_of_the_click(Some("IwAR2kZ8q_AbCd-1"), None, Some(MADE))]
    #[case::from_page(None, Some("fb.2.1794561000000.Iw"), Some("fb.2.1794561000000.Iw"))]
    #[case::handed_over_of_the_same_click(
        Some("Iw"),
        Some("fb.2.1794561000000.Iw"),
        Some("fb.2.1794561000000.Iw")
    )]
    #[case::with_an_appendix(
        Some("Iw"),
        Some("fb.2.1794561000000.Iw.AQICAQID"),
        Some("fb.2.1794561000000.Iw.AQICAQID")
    )]
    #[case::with_the_older_appendix(
        Some("Iw"),
        Some("fb.2.1794561000000.Iw.Bg"),
        Some("fb.2.1794561000000.Iw.Bg")
    )]
    #[case::of_another_click(
        Some("IwAR2kZ8q_AbCd-1"),
        Some("fb.2.1794561000000.Other"),
        Some(MADE)
    )]
    #[case::of_a_longer_one(
        Some("IwAR2kZ8q_AbCd-1"),
        Some("fb.2.1794561000000.IwAR2kZ8q_AbCd-1x"),
        Some(MADE)
    )]
    #[case::seconds_instead(None, Some("fb.1.1794561000.Iw"), None)]
    #[case::no_prefix(None, Some("1.1794561000000.Iw"), None)]
    #[case::long_index(None, Some("fb.100.1794561000000.Iw"), None)]
    #[case::no_id(None, Some("fb.1.1794561000000."), None)]
    #[case::odd_letters(None, Some("fb.1.1794561000000.I w"), None)]
    #[case::unsound_beside_a_click(Some("IwAR2kZ8q_AbCd-1"), Some("nonsense"), Some(MADE))]
    #[case::older_than_90_days(None, Some("fb.1.1786000000000.Iw"), None)]
    #[case::nothing(None, None, None)]
    fn builds_or_reuses_the_fbc(
        #[case] fbclid: Option<&str>,
        #[case] from_page: Option<&str>,
        #[case] expected: Option<&str>,
    ) {
        let mut conversion = web_event("purchase", "Purchase");
        let captured = &mut conversion.click.as_mut().unwrap().captured;
        captured.click_ids.fbclid = fbclid.map(str::to_owned);
        captured.browser_ids.fbc = from_page.map(str::to_owned);
        assert_eq!(fbc(ConversionFacts(&conversion)).as_deref(), expected);
    }

    #[test]
    fn omits_clicks_older_than_90_days() {
        let mut conversion = web_event("purchase", "Purchase");
        let last = CLICKED_AT.plus(AGE_MAX);
        conversion.event.occurred_at = last;
        assert!(fbc(ConversionFacts(&conversion)).is_some());
        conversion.event.occurred_at = last.plus(Duration::from_millis(1));
        assert_eq!(fbc(ConversionFacts(&conversion)), None);
    }

    #[test]
    fn a_click_id_without_a_click_is_dated_by_its_device() {
        let mut conversion = web_event("purchase", "Purchase");
        conversion.click = None;
        conversion.network_click_id = Some(("fbclid".to_owned(), "Iw".to_owned()));
        assert_eq!(
            fbc(ConversionFacts(&conversion)),
            None,
            "the time is unknown"
        );
        conversion.device = Some(device());
        let expected = format!("fb.1.{}.Iw", device().first_seen_at.as_millis());
        assert_eq!(fbc(ConversionFacts(&conversion)), Some(expected));
    }
}
