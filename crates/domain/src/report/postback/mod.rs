//! What postbacks come to when they arrive: stored or known already, counted or not.
//!
//! Conversion values are not signed, and neither is the time: whoever has seen a postback can send it again, as it
//! was or with another value, for ever. So a postback counts once, by its key, and the first one that came counts.
//! What is trusted less never takes the place of what is trusted more, even where it came earlier.

mod figures;

pub use figures::{PostbackCounts, PostbackFigures, PostbackSlice};

use crate::skan::counting::Trust;
use crate::skan::postback::{ParsedPostback, PostbackKey};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::PostbackId;
use crate::vocabulary::time::Timestamp;

/// When a postback counts. The app's switch for tests is asked when figures are read, so that turning it judges anew
/// what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counting {
    /// Whatever the switch says.
    Always,
    /// While tests count: a test, and the first of its key.
    WithTests,
    /// While tests do not: a test has its place otherwise.
    WithoutTests,
    /// Never: not trusted, or not the first.
    Never,
}

crate::keywords! {
    Counting[4] {
        Always => "always",
        WithTests => "with_tests",
        WithoutTests => "without_tests",
        Never => "never",
    }
}

impl Counting {
    /// Whether it counts now.
    pub const fn counts(self, accept_test_signals: bool) -> bool {
        match self {
            Self::Always => true,
            Self::WithTests => accept_test_signals,
            Self::WithoutTests => !accept_test_signals,
            Self::Never => false,
        }
    }
}

/// A postback at the door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedPostback {
    /// The id it gets.
    pub id: PostbackId,
    /// When it came.
    pub received_at: Timestamp,
    /// What it says, and what its signature is worth.
    pub parsed: ParsedPostback,
    /// As it came.
    pub body: String,
}

impl ReceivedPostback {
    /// How far it is trusted.
    pub fn trust(&self) -> Trust {
        Trust::of(&self.parsed.postback, self.parsed.signature)
    }

    /// What stands for its key.
    pub fn key_digest(&self) -> Digest {
        let PostbackKey {
            protocol,
            ad_network_id,
            transaction_id,
            sequence_index,
            did_win,
        } = self.parsed.postback.key();
        // No text of a postback holds the character between them.
        let parts = [
            protocol.as_str(),
            &ad_network_id,
            &transaction_id,
            &sequence_index.to_string(),
            &did_win.to_string(),
        ];
        Digest::of(parts.join("\0").as_bytes())
    }

    /// What stands for its bytes.
    pub fn body_digest(&self) -> Digest {
        Digest::of(self.body.as_bytes())
    }

    /// The App Store id of its app, as apps have it.
    pub fn app_store_id(&self) -> String {
        self.parsed.postback.app_store_id.to_string()
    }
}

/// What came before under a postback's key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EarlierPostbacks {
    /// Whether these very bytes did.
    pub has_same_body: bool,
    /// The first of each degree of trust, by its bytes.
    pub first_by_trust: Vec<(Trust, Digest)>,
}

/// What becomes of a postback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostbackDecision {
    /// A device's retry, or somebody's copy: nothing changes.
    Duplicate,
    /// Stored as the first of its key that is trusted so far.
    First(Counting),
    /// Stored, shown as a conflict, never counted.
    Conflicting,
}

/// Decides on a postback. Of the postbacks with one key the first that may count does
/// ([`counted`](crate::skan::counting::counted)), and whether tests may is not known yet.
pub fn decide_postback(arrival: &ReceivedPostback, before: &EarlierPostbacks) -> PostbackDecision {
    let (trust, body) = (arrival.trust(), arrival.body_digest());
    if before.has_same_body
        || before
            .first_by_trust
            .iter()
            .any(|(_, first)| *first == body)
    {
        return PostbackDecision::Duplicate;
    }
    // Trust comes in its order: the most trusted first.
    if before
        .first_by_trust
        .iter()
        .any(|(first, _)| *first <= trust)
    {
        return PostbackDecision::Conflicting;
    }
    let after_test = before
        .first_by_trust
        .iter()
        .any(|(first, _)| *first == Trust::Test);
    PostbackDecision::First(match trust {
        Trust::Trusted if after_test => Counting::WithoutTests,
        Trust::Trusted => Counting::Always,
        Trust::Test => Counting::WithTests,
        Trust::Untrusted => Counting::Never,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::skan::counting::first_countable;
    use crate::skan::postback::{ConversionType, Postback, Protocol, Signature};
    use rstest::rstest;

    pub(crate) fn arrival(signature: Signature, body: &str) -> ReceivedPostback {
        let postback = Postback {
            protocol: Protocol::SkAdNetwork,
            version: Some("4.0".to_owned()),
            ad_network_id: "Example123.skadnetwork".to_owned(),
            transaction_id: "6AAFB7A5-0170-41B5-BBE4-FE71DEDF1E28".to_owned(),
            app_store_id: 525_463_029,
            source_identifier: Some("5239".to_owned()),
            campaign_id: None,
            fine_value: Some(24),
            coarse_value: None,
            sequence_index: 0,
            did_win: true,
            redownload: Some(false),
            conversion_type: ConversionType::Download,
            interaction: None,
            source_app_id: Some(1),
            source_domain: None,
            country_code: None,
            marketplace_id: None,
            key_id: None,
        };
        ReceivedPostback {
            id: PostbackId::from_bytes([1; 16]),
            received_at: Timestamp::from_millis(1_767_225_600_001),
            parsed: ParsedPostback {
                postback,
                signature,
            },
            body: body.to_owned(),
        }
    }

    const NOTHING: &[(Trust, &str)] = &[];
    const REAL: &[(Trust, &str)] = &[(Trust::Trusted, "[]")];
    const COPY: &[(Trust, &str)] = &[(Trust::Trusted, "{}")];
    const TEST: &[(Trust, &str)] = &[(Trust::Test, "[]")];
    const FORGED: &[(Trust, &str)] = &[(Trust::Untrusted, "[]")];

    #[rstest]
    #[case::nothing_before(
        Signature::Valid,
        NOTHING,
        false,
        PostbackDecision::First(Counting::Always)
    )]
    #[case::a_test(
        Signature::Development,
        NOTHING,
        false,
        PostbackDecision::First(Counting::WithTests)
    )]
    #[case::a_forgery(
        Signature::Invalid,
        NOTHING,
        false,
        PostbackDecision::First(Counting::Never)
    )]
    #[case::unknown(
        Signature::Unverifiable,
        NOTHING,
        false,
        PostbackDecision::First(Counting::Never)
    )]
    #[case::a_retry(Signature::Valid, COPY, true, PostbackDecision::Duplicate)]
    #[case::a_copy_of_one_that_is_gone(Signature::Valid, COPY, false, PostbackDecision::Duplicate)]
    #[case::another_value(Signature::Valid, REAL, false, PostbackDecision::Conflicting)]
    #[case::a_forgery_takes_nobodys_place(
        Signature::Valid,
        FORGED,
        false,
        PostbackDecision::First(Counting::Always)
    )]
    #[case::a_test_takes_it_while_it_counts(
        Signature::Valid,
        TEST,
        false,
        PostbackDecision::First(Counting::WithoutTests)
    )]
    #[case::a_test_of_something_real(
        Signature::Development,
        REAL,
        false,
        PostbackDecision::Conflicting
    )]
    #[case::tampered_with(Signature::Invalid, REAL, false, PostbackDecision::Conflicting)]
    #[case::tampered_with_twice(Signature::Invalid, FORGED, false, PostbackDecision::Conflicting)]
    #[case::a_conflict_again(Signature::Invalid, REAL, true, PostbackDecision::Duplicate)]
    fn courses(
        #[case] signature: Signature,
        #[case] firsts: &[(Trust, &str)],
        #[case] same_body: bool,
        #[case] expected: PostbackDecision,
    ) {
        let firsts = firsts
            .iter()
            .map(|(trust, body)| (*trust, Digest::of(body.as_bytes())))
            .collect();
        let before = EarlierPostbacks {
            has_same_body: same_body,
            first_by_trust: firsts,
        };
        assert_eq!(
            decide_postback(&arrival(signature, "{}"), &before),
            expected
        );
    }

    /// What is decided on arrival comes to what the rule says of all of them together.
    #[test]
    fn every_order_of_arrival_comes_to_the_rule() {
        let signatures = [Signature::Valid, Signature::Development, Signature::Invalid];
        for number in 0..81_usize {
            let signature = |place: u32| signatures[number / 3_usize.pow(place) % 3];
            let mut before = EarlierPostbacks::default();
            let mut stored = Vec::new();
            for place in 0..4 {
                let arrival = arrival(signature(place), &place.to_string());
                let counting = match decide_postback(&arrival, &before) {
                    PostbackDecision::First(counting) => {
                        before
                            .first_by_trust
                            .push((arrival.trust(), arrival.body_digest()));
                        counting
                    }
                    PostbackDecision::Conflicting => Counting::Never,
                    PostbackDecision::Duplicate => panic!("every body is another"),
                };
                stored.push((arrival.trust(), counting));
            }
            let trusts: Vec<Trust> = stored.iter().map(|(trust, _)| *trust).collect();
            for switch in [false, true] {
                let counting: Vec<usize> = (0..stored.len())
                    .filter(|place| stored[*place].1.counts(switch))
                    .collect();
                let expected: Vec<usize> = first_countable(&trusts, switch).into_iter().collect();
                assert_eq!(counting, expected, "{trusts:?} {switch}");
            }
        }
    }

    #[test]
    fn every_word_is_read_again() {
        for one in Counting::ALL {
            assert_eq!(Counting::parse(one.as_str()), Some(one));
        }
    }

    #[test]
    fn a_key_is_of_either_case_and_tells_windows_and_losses_apart() {
        let one = arrival(Signature::Valid, "{}");
        let mut other = one.clone();
        other.parsed.postback.transaction_id = one.parsed.postback.transaction_id.to_lowercase();
        assert_eq!(one.key_digest(), other.key_digest());
        other.parsed.postback.sequence_index = 1;
        assert_ne!(one.key_digest(), other.key_digest());
        other = one.clone();
        other.parsed.postback.did_win = false;
        assert_ne!(one.key_digest(), other.key_digest());
    }
}
