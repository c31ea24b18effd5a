//! What Apple says about an install.
//!
//! The device sends a token, the server redeems it at Apple after it has answered the device. [`judge`] is
//! what is made of one answer: the end of it, or when to ask again. The answer's JSON is read by the caller.

use crate::access::Environment;
use crate::vocabulary::time::Timestamp;
use std::time::Duration;

/// How long Apple redeems a token.
pub const TOKEN_LIFE: Duration = Duration::from_hours(24);
/// How long Apple's record of an install may take: it says 404 until then.
pub const NOT_READY_WAIT: Duration = Duration::from_secs(5);
/// How often a token is redeemed that Apple has no record for. After that there is none.
pub const NOT_READY_ATTEMPTS_MAX: u32 = 3;
/// How long to wait after Apple's first failure. Each further one doubles it.
pub const FAILURE_WAIT_FIRST: Duration = Duration::from_secs(30);
/// How long to wait at most: a token lives a day, and an hour leaves two dozen attempts.
pub const FAILURE_WAIT_MAX: Duration = Duration::from_hours(1);
/// The campaign that Apple names to a build in developer mode.
pub const TEST_CAMPAIGN_ID: &str = "1234567890";

/// The claim of an ad that was seen, not tapped.
const CLAIM_VIEW: &str = "impression";
/// The status that a person had the app before.
const CONVERSION_REDOWNLOAD: &str = "redownload";

/// What is known from Apple.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AdServices {
    /// The device sent no token.
    #[default]
    NoToken,
    /// A token was sent, Apple has not answered.
    Pending,
    /// A tap on an ad led to the install.
    Tap(Box<AdServicesRecord>),
    /// An ad that was seen led to the install.
    View(Box<AdServicesRecord>),
    /// Apple has no record of an ad.
    NotAttributed,
    /// Apple does not know the token.
    Invalid,
    /// The token was not redeemed while it lived.
    Expired,
}

/// Apple's record of the ad. Its ids are numbers there, and text here: nobody counts with them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AdServicesRecord {
    /// Whose ad.
    pub org_id: Option<String>,
    /// Of which campaign.
    pub campaign_id: Option<String>,
    /// Of which ad group.
    pub ad_group_id: Option<String>,
    /// What was searched for; absent with search match.
    pub keyword_id: Option<String>,
    /// Which ad.
    pub ad_id: Option<String>,
    /// Whether the person had the app before.
    pub redownload: bool,
    /// Two letters.
    pub country: Option<String>,
    /// When the ad was tapped or seen, to the minute; only where tracking is authorised.
    pub at: Option<Timestamp>,
    /// Where in the store the ad was.
    pub supply_placement: Option<String>,
}

/// Apple's answer as it stands in the body, ids as text.
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

/// What is made of one attempt to redeem a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedemptionOutcome {
    /// That is Apple's answer; the token is done with.
    Final(AdServices),
    /// To be redeemed again, so much later.
    RetryAfter(Duration),
}

impl AdServicesRecord {
    /// Whether it is what Apple answers to a build in developer mode.
    pub fn is_test_data(&self) -> bool {
        self.campaign_id.as_deref() == Some(TEST_CAMPAIGN_ID)
    }
}

impl AdServices {
    /// As the explanation of a decision says it; nothing when no token was sent.
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

    /// Apple's record, if there is one.
    pub const fn record(&self) -> Option<&AdServicesRecord> {
        match self {
            Self::Tap(record) | Self::View(record) => Some(record),
            _ => None,
        }
    }

    /// Whether this is test data about a live install. It is no evidence then: nobody paid for that ad.
    pub fn is_test_data_in(&self, environment: Environment) -> bool {
        environment == Environment::Live
            && self.record().is_some_and(AdServicesRecord::is_test_data)
    }
}

impl From<AdServicesResponse> for AdServices {
    /// An answer without a claim is older than views, so it is a tap.
    fn from(answer: AdServicesResponse) -> Self {
        if !answer.attribution {
            return Self::NotAttributed;
        }
        let is =
            |text: Option<String>, word| text.is_some_and(|text| text.eq_ignore_ascii_case(word));
        let view = is(answer.claim_type, CLAIM_VIEW);
        let record = Box::new(AdServicesRecord {
            org_id: answer.org_id,
            campaign_id: answer.campaign_id,
            ad_group_id: answer.ad_group_id,
            keyword_id: answer.keyword_id,
            ad_id: answer.ad_id,
            redownload: is(answer.conversion_type, CONVERSION_REDOWNLOAD),
            country: answer.country_or_region,
            at: if view {
                answer.impression_date
            } else {
                answer.click_date
            },
            supply_placement: answer.supply_placement,
        });
        if view {
            Self::View(record)
        } else {
            Self::Tap(record)
        }
    }
}

/// How long to wait after so many failures.
fn failure_wait(attempts_made: u32) -> Duration {
    let doublings = attempts_made.saturating_sub(1).min(31);
    FAILURE_WAIT_FIRST
        .saturating_mul(1 << doublings)
        .min(FAILURE_WAIT_MAX)
}

/// What to make of one attempt.
///
/// `status` is nothing when Apple did not answer in time. `body` is nothing when it could not be read.
/// `attempts_made` counts this one. A 404 after other failures is not waited for again: the record had the
/// time it needs.
pub fn judge(
    status: Option<u16>,
    body: Option<AdServicesResponse>,
    attempts_made: u32,
    token_age: Duration,
) -> RedemptionOutcome {
    let wait = match (status, body) {
        (Some(200), Some(answer)) => return RedemptionOutcome::Final(answer.into()),
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

    fn answer(claim: Option<&str>) -> AdServicesResponse {
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
    #[case::a_tap(Some(200), Some(answer(Some("Click"))), 1, FRESH, "tap")]
    #[case::a_view(Some(200), Some(answer(Some("Impression"))), 1, FRESH, "view")]
    #[case::a_claim_unsaid_is_a_tap(Some(200), Some(answer(None)), 1, FRESH, "tap")]
    #[case::no_record(
        Some(200),
        Some(AdServicesResponse::default()),
        1,
        FRESH,
        "not_attributed"
    )]
    #[case::an_answer_counts_however_late(Some(200), Some(answer(None)), 9, OLD, "tap")]
    #[case::an_invalid_token(Some(400), None, 1, FRESH, "invalid")]
    #[case::not_found_for_the_third_time(Some(404), None, 3, FRESH, "not_attributed")]
    #[case::not_found_and_a_day_old(Some(404), None, 1, OLD, "expired")]
    #[case::down_until_the_token_died(Some(500), None, 9, OLD, "expired")]
    #[case::silent_until_the_token_died(None, None, 9, OLD, "expired")]
    #[case::the_next_attempt_would_be_too_late(Some(500), None, 2, NEARLY_OLD, "expired")]
    fn an_end(
        #[case] status: Option<u16>,
        #[case] body: Option<AdServicesResponse>,
        #[case] attempts_made: u32,
        #[case] token_age: Duration,
        #[case] expected: &str,
    ) {
        match judge(status, body, attempts_made, token_age) {
            RedemptionOutcome::Final(known) => assert_eq!(known.as_str(), Some(expected)),
            RedemptionOutcome::RetryAfter(wait) => panic!("again after {wait:?}"),
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
    #[case::an_answer_is_one_only_with_its_status(Some(503), Some(answer(None)), 1, 30)]
    #[case::never_more_than_an_hour(Some(500), None, 9, 3_600)]
    #[case::however_often(Some(500), None, u32::MAX, 3_600)]
    fn another_attempt(
        #[case] status: Option<u16>,
        #[case] body: Option<AdServicesResponse>,
        #[case] attempts_made: u32,
        #[case] expected_seconds: u64,
    ) {
        let expected = RedemptionOutcome::RetryAfter(Duration::from_secs(expected_seconds));
        assert_eq!(judge(status, body, attempts_made, FRESH), expected);
    }

    #[test]
    fn a_record_that_is_late_is_waited_for() {
        let answers = [(404, None), (404, None), (200, Some(answer(Some("Click"))))];
        let verdicts: Vec<_> = (1..)
            .zip(answers)
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
    fn a_record_has_the_date_of_its_claim(#[case] claim: &str, #[case] expected: i64) {
        let known = AdServices::from(answer(Some(claim)));
        let at = known.record().and_then(|record| record.at);
        assert_eq!(at, Some(Timestamp::from_millis(expected)));
    }

    #[test]
    fn test_data_is_known_by_its_campaign() {
        let record = AdServicesRecord {
            campaign_id: Some(TEST_CAMPAIGN_ID.to_owned()),
            ..AdServicesRecord::default()
        };
        let known = AdServices::View(Box::new(record));
        assert!(known.is_test_data_in(Environment::Live));
        assert!(!known.is_test_data_in(Environment::Test));
        assert!(!AdServices::NotAttributed.is_test_data_in(Environment::Live));
    }
}
