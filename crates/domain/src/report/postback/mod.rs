//! Decides whether a received postback is a duplicate, and whether and when it counts.
//!
//! Conversion values and times are not signed, so anyone who has seen a postback can send it again,
//! unchanged or with another value. Among postbacks with the same deduplication key, only the first
//! one received counts. But a less trusted postback never displaces a more trusted one, even if it
//! was received earlier.

mod figures;

pub use figures::{PostbackCounts, PostbackFigures, PostbackSlice};

use crate::skan::counting::Trust;
use crate::skan::postback::{ParsedPostback, PostbackKey};
use crate::vocabulary::digest::Digest;
use crate::vocabulary::id::PostbackId;
use crate::vocabulary::time::Timestamp;

/// When a postback counts. The app's `acceptTestSignals` is applied when figures are read, so
/// changing it also affects stored postbacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PostbackCounting {
    /// Regardless of `acceptTestSignals`.
    Always,
    /// Only while test signals are accepted: a test postback that is the first with its
    /// deduplication key.
    WithTests,
    /// Only while test signals are not accepted: otherwise an earlier test postback counts instead.
    WithoutTests,
    /// Never: not trusted, or not the first postback with its deduplication key.
    Never,
}

crate::keywords! {
    PostbackCounting[4] {
        Always => "always",
        WithTests => "with_tests",
        WithoutTests => "without_tests",
        Never => "never",
    }
}

impl PostbackCounting {
    /// Returns whether the postback counts, given the app's `acceptTestSignals`.
    pub const fn counts(self, accept_test_signals: bool) -> bool {
        match self {
            Self::Always => true,
            Self::WithTests => accept_test_signals,
            Self::WithoutTests => !accept_test_signals,
            Self::Never => false,
        }
    }
}

/// A postback as received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedPostback {
    /// Id assigned on receipt.
    pub id: PostbackId,
    /// Time received.
    pub received_at: Timestamp,
    /// Parsed fields and result of the signature check.
    pub parsed: ParsedPostback,
    /// Request body as received.
    pub body: String,
}

impl ReceivedPostback {
    /// Returns how far the postback is trusted.
    pub fn trust(&self) -> Trust {
        Trust::of(&self.parsed.postback, self.parsed.signature)
    }

    /// Returns the digest of the deduplication key.
    pub fn key_digest(&self) -> Digest {
        let PostbackKey {
            protocol,
            ad_network_id,
            transaction_id,
            sequence_index,
            did_win,
        } = self.parsed.postback.key();
        // Postback text never contains NUL, so the separator is unambiguous.
        let parts = [
            protocol.as_str(),
            &ad_network_id,
            &transaction_id,
            &sequence_index.to_string(),
            &did_win.to_string(),
        ];
        Digest::of(parts.join("\0").as_bytes())
    }

    /// Returns the digest of the body.
    pub fn body_digest(&self) -> Digest {
        Digest::of(self.body.as_bytes())
    }

    /// Returns the App Store id as text, the form that apps store.
    pub fn app_store_id(&self) -> String {
        self.parsed.postback.app_store_id.to_string()
    }
}

/// Number of stored postbacks with the same deduplication key above which further ones that conflict
/// are dropped. Anyone can add fields to a postback without changing its signature, so their number
/// would be unlimited.
pub const VARIANTS_MAX: u32 = 8;

/// Earlier postbacks with the same deduplication key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EarlierPostbacks {
    /// Whether an identical body was received.
    pub has_same_body: bool,
    /// Digest of the first body per trust level.
    pub first_by_trust: Vec<(Trust, Digest)>,
    /// Number of stored postbacks, or [`VARIANTS_MAX`] if there are more.
    pub variants: u32,
}

/// Decision about a postback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostbackDecision {
    /// A retry or a copy of an earlier postback; nothing changes.
    Duplicate,
    /// Stored. No earlier postback with the same deduplication key is trusted as much.
    First(PostbackCounting),
    /// Stored, shown as a conflict, never counted.
    Conflicting,
    /// Conflicts with [`VARIANTS_MAX`] stored postbacks; nothing changes.
    TooManyVariants,
}

/// Decides whether a postback is stored and when it counts. Among postbacks with the same
/// deduplication key, the first one that may count does
/// ([`first_countable`](crate::skan::counting::first_countable)). Whether tests may count is
/// decided when figures are read.
pub fn decide_postback(received: &ReceivedPostback, before: &EarlierPostbacks) -> PostbackDecision {
    let (trust, body) = (received.trust(), received.body_digest());
    if before.has_same_body
        || before
            .first_by_trust
            .iter()
            .any(|(_, first)| *first == body)
    {
        return PostbackDecision::Duplicate;
    }
    // `Trust` orders the most trusted first.
    if before
        .first_by_trust
        .iter()
        .any(|(first, _)| *first <= trust)
    {
        return if before.variants < VARIANTS_MAX {
            PostbackDecision::Conflicting
        } else {
            PostbackDecision::TooManyVariants
        };
    }
    let after_test = before
        .first_by_trust
        .iter()
        .any(|(first, _)| *first == Trust::Test);
    PostbackDecision::First(match trust {
        Trust::Trusted if after_test => PostbackCounting::WithoutTests,
        Trust::Trusted => PostbackCounting::Always,
        Trust::Test => PostbackCounting::WithTests,
        Trust::Untrusted => PostbackCounting::Never,
    })
}

/// Decision about a postback whose app is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnclaimedDecision {
    /// A copy of a waiting postback; nothing changes.
    Duplicate,
    /// Stored until an app has the postback's App Store id.
    Waiting,
    /// [`VARIANTS_MAX`] others are waiting; nothing changes.
    TooManyVariants,
}

/// Decides whether a postback whose app is unknown is stored. `waiting` are the bodies of the
/// waiting postbacks with the same deduplication key and state of the signature, so that forged
/// ones do not displace genuine ones.
pub fn decide_unclaimed(received: &ReceivedPostback, waiting: &[Digest]) -> UnclaimedDecision {
    if waiting.contains(&received.body_digest()) {
        UnclaimedDecision::Duplicate
    } else if waiting.len() < VARIANTS_MAX as usize {
        UnclaimedDecision::Waiting
    } else {
        UnclaimedDecision::TooManyVariants
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::skan::counting::first_countable;
    use crate::skan::postback::{ConversionType, Postback, Protocol, Signature};
    use rstest::rstest;

    pub(crate) fn received(signature: Signature, body: &str) -> ReceivedPostback {
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
        PostbackDecision::First(PostbackCounting::Always)
    )]
    #[case::a_test(
        Signature::Development,
        NOTHING,
        false,
        PostbackDecision::First(PostbackCounting::WithTests)
    )]
    #[case::a_forgery(
        Signature::Invalid,
        NOTHING,
        false,
        PostbackDecision::First(PostbackCounting::Never)
    )]
    #[case::unknown(
        Signature::Unverifiable,
        NOTHING,
        false,
        PostbackDecision::First(PostbackCounting::Never)
    )]
    #[case::a_retry(Signature::Valid, COPY, true, PostbackDecision::Duplicate)]
    #[case::a_copy_of_a_deleted_one(Signature::Valid, COPY, false, PostbackDecision::Duplicate)]
    #[case::another_value(Signature::Valid, REAL, false, PostbackDecision::Conflicting)]
    #[case::a_forgery_does_not_block_a_valid_one(
        Signature::Valid,
        FORGED,
        false,
        PostbackDecision::First(PostbackCounting::Always)
    )]
    #[case::a_test_counts_instead_while_accepted(
        Signature::Valid,
        TEST,
        false,
        PostbackDecision::First(PostbackCounting::WithoutTests)
    )]
    #[case::a_test_after_a_valid_one(
        Signature::Development,
        REAL,
        false,
        PostbackDecision::Conflicting
    )]
    #[case::tampered_with(Signature::Invalid, REAL, false, PostbackDecision::Conflicting)]
    #[case::tampered_with_twice(Signature::Invalid, FORGED, false, PostbackDecision::Conflicting)]
    #[case::a_conflict_again(Signature::Invalid, REAL, true, PostbackDecision::Duplicate)]
    fn decisions(
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
            variants: 1,
        };
        assert_eq!(
            decide_postback(&received(signature, "{}"), &before),
            expected
        );
    }

    #[rstest]
    #[case::a_conflict(Signature::Valid, REAL, VARIANTS_MAX - 1, PostbackDecision::Conflicting)]
    #[case::one_too_many(
        Signature::Valid,
        REAL,
        VARIANTS_MAX,
        PostbackDecision::TooManyVariants
    )]
    #[case::a_copy(Signature::Valid, COPY, VARIANTS_MAX, PostbackDecision::Duplicate)]
    #[case::forgeries_do_not_block_a_valid_one(
        Signature::Valid,
        FORGED,
        VARIANTS_MAX,
        PostbackDecision::First(PostbackCounting::Always)
    )]
    fn variants_are_limited(
        #[case] signature: Signature,
        #[case] firsts: &[(Trust, &str)],
        #[case] variants: u32,
        #[case] expected: PostbackDecision,
    ) {
        let digest = |(trust, body): &(Trust, &str)| (*trust, Digest::of(body.as_bytes()));
        let before = EarlierPostbacks {
            has_same_body: false,
            first_by_trust: firsts.iter().map(digest).collect(),
            variants,
        };
        let received = received(signature, "{}");
        assert_eq!(decide_postback(&received, &before), expected);
    }

    #[test]
    fn waiting_variants_are_limited() {
        let received = received(Signature::Valid, "{}");
        let mut waiting = Vec::new();
        for number in 0..VARIANTS_MAX {
            assert_eq!(
                decide_unclaimed(&received, &waiting),
                UnclaimedDecision::Waiting
            );
            waiting.push(Digest::of(&number.to_be_bytes()));
        }
        let decision = decide_unclaimed(&received, &waiting);
        assert_eq!(decision, UnclaimedDecision::TooManyVariants);
        waiting[0] = received.body_digest();
        assert_eq!(
            decide_unclaimed(&received, &waiting),
            UnclaimedDecision::Duplicate
        );
    }

    /// Decisions made one by one must agree with the rule applied to all postbacks at once.
    #[test]
    fn decisions_in_any_order_agree_with_the_rule() {
        let signatures = [Signature::Valid, Signature::Development, Signature::Invalid];
        for number in 0..81_usize {
            let signature = |index: u32| signatures[number / 3_usize.pow(index) % 3];
            let mut before = EarlierPostbacks::default();
            let mut stored = Vec::new();
            for index in 0..4 {
                let received = received(signature(index), &index.to_string());
                let counting = match decide_postback(&received, &before) {
                    PostbackDecision::First(counting) => {
                        before
                            .first_by_trust
                            .push((received.trust(), received.body_digest()));
                        counting
                    }
                    PostbackDecision::Conflicting => PostbackCounting::Never,
                    PostbackDecision::Duplicate | PostbackDecision::TooManyVariants => {
                        panic!("all bodies differ, and there are few")
                    }
                };
                stored.push((received.trust(), counting));
            }
            let trusts: Vec<Trust> = stored.iter().map(|(trust, _)| *trust).collect();
            for switch in [false, true] {
                let counting: Vec<usize> = (0..stored.len())
                    .filter(|index| stored[*index].1.counts(switch))
                    .collect();
                let expected: Vec<usize> = first_countable(&trusts, switch).into_iter().collect();
                assert_eq!(counting, expected, "{trusts:?} {switch}");
            }
        }
    }

    #[test]
    fn every_keyword_round_trips() {
        for one in PostbackCounting::ALL {
            assert_eq!(PostbackCounting::parse(one.as_str()), Some(one));
        }
    }

    #[test]
    fn keys_ignore_case_and_differ_by_window_and_result() {
        let one = received(Signature::Valid, "{}");
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
