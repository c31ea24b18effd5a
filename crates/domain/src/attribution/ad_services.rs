//! Apple's AdServices attribution.
//!
//! The device sends a token, and the server redeems it with Apple after it has responded to the
//! device. [`judge`] classifies a response as a final result or a retry. The caller parses the
//! response's JSON.

use crate::access::Environment;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// How long Apple accepts a token.
pub const TOKEN_LIFE: Duration = Duration::from_hours(24);
/// Wait before the next attempt while Apple's record is not ready. Until the record is ready, Apple
/// responds with 404.
pub const NOT_READY_WAIT: Duration = Duration::from_secs(5);
/// Number of attempts from which a 404 is final: Apple is then assumed to have no record.
pub const NOT_READY_ATTEMPTS_MAX: u32 = 3;
/// Back-off after the first failure. Each further failure doubles it.
pub const FAILURE_WAIT_FIRST: Duration = Duration::from_secs(30);
/// Maximum back-off. A token is valid for a day, so a back-off of one hour still leaves time for
/// about two dozen attempts.
pub const FAILURE_WAIT_MAX: Duration = Duration::from_hours(1);
/// Campaign id that Apple returns to development builds.
pub const TEST_CAMPAIGN_ID: &str = "1234567890";

/// `claimType` of an ad that was seen, not tapped.
const CLAIM_VIEW: &str = "impression";
/// `conversionType` of a repeated download.
const CONVERSION_REDOWNLOAD: &str = "redownload";

/// Apple's result for a token.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AdServices {
    /// The device sent no token.
    #[default]
    NoToken,
    /// Apple has not responded yet.
    Pending,
    /// A tap on an ad led to the install.
    Tap(Box<AdServicesRecord>),
    /// A view of an ad led to the install.
    View(Box<AdServicesRecord>),
    /// Apple has no record of an ad.
    NotAttributed,
    /// Apple rejected the token.
    Invalid,
    /// The token expired before it was redeemed.
    Expired,
}

/// Apple's record of the ad, with ids as text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AdServicesRecord {
    /// Id of the advertiser's organization.
    pub org_id: Option<String>,
    /// Campaign id.
    pub campaign_id: Option<String>,
    /// Ad group id.
    pub ad_group_id: Option<String>,
    /// Keyword id; absent with Search Match.
    pub keyword_id: Option<String>,
    /// Ad id.
    pub ad_id: Option<String>,
    /// Whether the user had downloaded the app before.
    pub redownload: bool,
    /// Country, as two letters.
    pub country: Option<String>,
    /// Time of the tap or view, to the minute; only present if the user allowed tracking.
    pub at: Option<Timestamp>,
    /// Placement of the ad in the store.
    pub supply_placement: Option<String>,
}

/// Body of Apple's response, with ids as text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "Apple's own names")]
pub struct AdServicesResponse {
    pub attribution: bool,
    pub org_id: Option<String>,
    pub campaign_id: Option<String>,
    pub ad_group_id: Option<String>,
    pub keyword_id: Option<String>,
    pub ad_id: Option<String>,
    pub conversion_type: Option<String>,
    pub claim_type: Option<String>,
    pub country_or_region: Option<String>,
    pub click_date: Option<Timestamp>,
    pub impression_date: Option<Timestamp>,
    pub supply_placement: Option<String>,
}

/// Outcome of one attempt to redeem a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedemptionOutcome {
    /// Final result.
    Final(AdServices),
    /// Retry after this time.
    RetryAfter(Duration),
}

impl AdServicesRecord {
    /// Returns whether this is Apple's test data for development builds.
    pub fn is_test_data(&self) -> bool {
        self.campaign_id.as_deref() == Some(TEST_CAMPAIGN_ID)
    }
}

impl AdServices {
    /// Returns the name used in explanations; `None` if no token was sent.
    pub const fn as_str(&self) -> Option<&'static str> {
        match self {
            Self::NoToken => None,
            Self::Pending => Some("pending"),
            Self::Tap(_) => Some("tap"),
            Self::View(_) => Some("view"),
            Self::NotAttributed => Some("not_attributed"),
            Self::Invalid => Some("invalid"),
            Self::Expired => Some("expired"),
        }
    }

    /// Returns Apple's record, if there is one.
    pub const fn record(&self) -> Option<&AdServicesRecord> {
        match self {
            Self::Tap(record) | Self::View(record) => Some(record),
            _ => None,
        }
    }

    /// Returns whether this is test data for a live install, which does not count as evidence.
    pub fn is_test_data_in(&self, environment: Environment) -> bool {
        environment == Environment::Live
            && self.record().is_some_and(AdServicesRecord::is_test_data)
    }
}

impl From<AdServicesResponse> for AdServices {
    /// Converts a response. A response without `claimType` predates view claims, so it is a tap.
    fn from(response: AdServicesResponse) -> Self {
        if !response.attribution {
            return Self::NotAttributed;
        }
        let is =
            |text: Option<String>, word| text.is_some_and(|text| text.eq_ignore_ascii_case(word));
        let is_view = is(response.claim_type, CLAIM_VIEW);
        let record = Box::new(AdServicesRecord {
            org_id: response.org_id,
            campaign_id: response.campaign_id,
            ad_group_id: response.ad_group_id,
            keyword_id: response.keyword_id,
            ad_id: response.ad_id,
            redownload: is(response.conversion_type, CONVERSION_REDOWNLOAD),
            country: response.country_or_region,
            at: if is_view {
                response.impression_date
            } else {
                response.click_date
            },
            supply_placement: response.supply_placement,
        });
        if is_view {
            Self::View(record)
        } else {
            Self::Tap(record)
        }
    }
}

/// Returns the back-off after this many attempts.
fn failure_wait(attempts_made: u32) -> Duration {
    let doublings = attempts_made.saturating_sub(1).min(31);
    FAILURE_WAIT_FIRST
        .saturating_mul(1 << doublings)
        .min(FAILURE_WAIT_MAX)
}

/// Classifies the outcome of one attempt.
///
/// `status` is `None` if Apple did not respond in time. `body` is `None` if the response could not
/// be parsed. `attempts_made` includes this attempt. Attempts that failed for other reasons count
/// too: a 404 after them is not retried, because the record had enough time to appear.
pub fn judge(
    status: Option<u16>,
    body: Option<AdServicesResponse>,
    attempts_made: u32,
    token_age: Duration,
) -> RedemptionOutcome {
    let wait = match (status, body) {
        (Some(200), Some(response)) => return RedemptionOutcome::Final(response.into()),
        (Some(400), _) => return RedemptionOutcome::Final(AdServices::Invalid),
        (Some(404), _) if token_age >= TOKEN_LIFE => {
            return RedemptionOutcome::Final(AdServices::Expired);
        }
        (Some(404), _) if attempts_made >= NOT_READY_ATTEMPTS_MAX => {
            return RedemptionOutcome::Final(AdServices::NotAttributed);
        }
        (Some(404), _) => NOT_READY_WAIT,
        _ => failure_wait(attempts_made),
    };
    if token_age.saturating_add(wait) >= TOKEN_LIFE {
        return RedemptionOutcome::Final(AdServices::Expired);
    }
    RedemptionOutcome::RetryAfter(wait)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const FRESH: Duration = Duration::from_secs(2);
    const OLD: Duration = Duration::from_hours(24);
    const NEARLY_OLD: Duration = Duration::from_mins(24 * 60 - 1);

    fn response(claim: Option<&str>) -> AdServicesResponse {
        AdServicesResponse {
            attribution: true,
            campaign_id: Some("542370539".to_owned()),
            claim_type: claim.map(str::to_owned),
            click_date: Some(Timestamp::from_millis(1)),
            impression_date: Some(Timestamp::from_millis(2)),
            ..AdServicesResponse::default()
        }
    }

    #[rstest]
    #[case::a_tap(Some(200), Some(response(Some("Click"))), 1, FRESH, "tap")]
    #[case::a_view(Some(200), Some(response(Some("Impression"))), 1, FRESH, "view")]
    #[case::a_missing_claim_is_a_tap(Some(200), Some(response(None)), 1, FRESH, "tap")]
    #[case::no_record(
        Some(200),
        Some(AdServicesResponse::default()),
        1,
        FRESH,
        "not_attributed"
    )]
    #[case::a_late_response_counts(Some(200), Some(response(None)), 9, OLD, "tap")]
    #[case::an_invalid_token(Some(400), None, 1, FRESH, "invalid")]
    #[case::not_found_for_the_third_time(Some(404), None, 3, FRESH, "not_attributed")]
    #[case::not_found_and_a_day_old(Some(404), None, 1, OLD, "expired")]
    #[case::down_until_the_token_expired(Some(500), None, 9, OLD, "expired")]
    #[case::silent_until_the_token_expired(None, None, 9, OLD, "expired")]
    #[case::the_next_attempt_would_be_too_late(Some(500), None, 2, NEARLY_OLD, "expired")]
    fn ends_with_a_final_result(
        #[case] status: Option<u16>,
        #[case] body: Option<AdServicesResponse>,
        #[case] attempts_made: u32,
        #[case] token_age: Duration,
        #[case] expected: &str,
    ) {
        match judge(status, body, attempts_made, token_age) {
            RedemptionOutcome::Final(result) => assert_eq!(result.as_str(), Some(expected)),
            RedemptionOutcome::RetryAfter(wait) => panic!("retry after {wait:?}"),
        }
    }

    #[rstest]
    #[case::not_ready(Some(404), None, 1, 5)]
    #[case::still_not_ready(Some(404), None, 2, 5)]
    #[case::down(Some(500), None, 1, 30)]
    #[case::down_again(Some(500), None, 2, 60)]
    #[case::busy(Some(429), None, 3, 120)]
    #[case::silent(None, None, 1, 30)]
    #[case::unreadable(Some(200), None, 1, 30)]
    #[case::a_body_counts_only_with_status_200(Some(503), Some(response(None)), 1, 30)]
    #[case::never_more_than_an_hour(Some(500), None, 9, 3_600)]
    #[case::after_many_failures(Some(500), None, u32::MAX, 3_600)]
    fn retries_after_a_wait(
        #[case] status: Option<u16>,
        #[case] body: Option<AdServicesResponse>,
        #[case] attempts_made: u32,
        #[case] expected_seconds: u64,
    ) {
        let expected = RedemptionOutcome::RetryAfter(Duration::from_secs(expected_seconds));
        assert_eq!(judge(status, body, attempts_made, FRESH), expected);
    }

    #[test]
    fn waits_for_a_late_record() {
        let responses = [
            (404, None),
            (404, None),
            (200, Some(response(Some("Click")))),
        ];
        let verdicts: Vec<_> = (1..)
            .zip(responses)
            .map(|(attempt, (status, body))| judge(Some(status), body, attempt, FRESH))
            .collect();
        assert_eq!(
            verdicts[..2],
            [const { RedemptionOutcome::RetryAfter(NOT_READY_WAIT) }; 2]
        );
        assert!(matches!(
            verdicts[2],
            RedemptionOutcome::Final(AdServices::Tap(_))
        ));
    }

    #[rstest]
    #[case::of_the_tap("Click", 1)]
    #[case::of_the_view("impression", 2)]
    fn uses_the_date_of_the_claim(#[case] claim: &str, #[case] expected: i64) {
        let result = AdServices::from(response(Some(claim)));
        let at = result.record().and_then(|record| record.at);
        assert_eq!(at, Some(Timestamp::from_millis(expected)));
    }

    #[test]
    fn recognises_test_data_by_its_campaign() {
        let record = AdServicesRecord {
            campaign_id: Some(TEST_CAMPAIGN_ID.to_owned()),
            ..AdServicesRecord::default()
        };
        let result = AdServices::View(Box::new(record));
        assert!(result.is_test_data_in(Environment::Live));
        assert!(!result.is_test_data_in(Environment::Test));
        assert!(!AdServices::NotAttributed.is_test_data_in(Environment::Live));
    }
}
