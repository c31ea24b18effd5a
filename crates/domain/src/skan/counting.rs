//! Which postbacks count, and in which figure.
//!
//! Postback figures are never added to device figures, because most installs are counted in both.

use crate::skan::postback::{ConversionType, Postback, Signature};

/// Trust level of a postback, stored with it. The app's `acceptTestSignals` is applied when
/// reporting, so that changing it also affects stored postbacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trust {
    /// `trusted`: Apple signed the postback.
    Trusted,
    /// `test`: marked as a test, or signed with a development key. Anyone with a phone can create
    /// such a postback.
    Test,
    /// `untrusted`: the sender is not verified.
    Untrusted,
}

crate::keywords! {
    Trust[3] {
        Trusted => "trusted",
        Test => "test",
        Untrusted => "untrusted",
    }
}

impl Trust {
    /// Returns the trust level of a postback.
    pub fn of(postback: &Postback, signature: Signature) -> Self {
        match signature {
            Signature::Valid if !postback.is_test() => Self::Trusted,
            Signature::Valid | Signature::Development => Self::Test,
            Signature::Invalid | Signature::Unverifiable => Self::Untrusted,
        }
    }

    /// Returns whether the postback may count, given the app's `acceptTestSignals`.
    pub const fn may_count(self, accept_test_signals: bool) -> bool {
        match self {
            Self::Trusted => true,
            Self::Test => accept_test_signals,
            Self::Untrusted => false,
        }
    }
}

/// Returns which of the postbacks with the same deduplication key counts: the index of the first
/// one that may count, in order of receipt. A postback that may not count never displaces a later
/// one.
pub fn first_countable(received: &[Trust], accept_test_signals: bool) -> Option<usize> {
    received
        .iter()
        .position(|trust| trust.may_count(accept_test_signals))
}

/// Figure that a countable postback is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Figure {
    /// An install credited to this network.
    Install,
    /// An install by a person who had the app before.
    Redownload,
    /// A return to the app through an ad.
    ReEngagement,
    /// A later value for an install that was already counted.
    Later,
    /// Another network won. Stored, but never an install.
    Loss,
}

crate::keywords! {
    Figure[5] {
        Install => "install",
        Redownload => "redownload",
        ReEngagement => "re-engagement",
        Later => "later",
        Loss => "loss",
    }
}

impl Figure {
    /// Returns the figure for a postback.
    pub const fn of(postback: &Postback) -> Self {
        Self::from_parts(
            postback.did_win,
            postback.sequence_index,
            postback.conversion_type,
        )
    }

    /// Returns the figure, given the postback's fields that determine it.
    pub const fn from_parts(did_win: bool, sequence_index: u8, conversion: ConversionType) -> Self {
        match (did_win, sequence_index, conversion) {
            (false, _, _) => Self::Loss,
            (true, 0, ConversionType::Download) => Self::Install,
            (true, 0, ConversionType::Redownload) => Self::Redownload,
            (true, 0, ConversionType::ReEngagement) => Self::ReEngagement,
            (true, _, _) => Self::Later,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skan::postback::Protocol;
    use rstest::rstest;

    const DOWNLOAD: ConversionType = ConversionType::Download;
    const AGAIN: ConversionType = ConversionType::Redownload;
    const BACK: ConversionType = ConversionType::ReEngagement;

    fn postback(source_app_id: Option<i64>) -> Postback {
        Postback {
            protocol: Protocol::SkAdNetwork,
            version: None,
            ad_network_id: String::new(),
            transaction_id: String::new(),
            app_store_id: 1,
            source_identifier: None,
            campaign_id: None,
            fine_value: None,
            coarse_value: None,
            sequence_index: 0,
            did_win: true,
            redownload: None,
            conversion_type: DOWNLOAD,
            interaction: None,
            source_app_id,
            source_domain: None,
            country_code: None,
            marketplace_id: None,
            key_id: None,
        }
    }

    #[rstest]
    #[case::valid(Signature::Valid, Some(5), Trust::Trusted, true, true)]
    #[case::valid_without_source(Signature::Valid, None, Trust::Trusted, true, true)]
    #[case::valid_test(Signature::Valid, Some(0), Trust::Test, false, true)]
    #[case::development(Signature::Development, Some(5), Trust::Test, false, true)]
    #[case::development_test(Signature::Development, Some(0), Trust::Test, false, true)]
    #[case::invalid(Signature::Invalid, Some(5), Trust::Untrusted, false, false)]
    #[case::invalid_test(Signature::Invalid, Some(0), Trust::Untrusted, false, false)]
    #[case::unverifiable(Signature::Unverifiable, None, Trust::Untrusted, false, false)]
    #[case::unverifiable_test(Signature::Unverifiable, Some(0), Trust::Untrusted, false, false)]
    fn trust_decides_what_may_count(
        #[case] signature: Signature,
        #[case] source: Option<i64>,
        #[case] trust: Trust,
        #[case] without_test_signals: bool,
        #[case] with_test_signals: bool,
    ) {
        let found = Trust::of(&postback(source), signature);
        assert_eq!(found, trust);
        assert_eq!(found.may_count(false), without_test_signals);
        assert_eq!(found.may_count(true), with_test_signals);
    }

    #[rstest]
    #[case::none(&[], None, None)]
    #[case::one(&[Trust::Trusted], Some(0), Some(0))]
    #[case::the_first_of_two(&[Trust::Trusted, Trust::Trusted], Some(0), Some(0))]
    #[case::a_forgery_first(&[Trust::Untrusted, Trust::Trusted], Some(1), Some(1))]
    #[case::forgeries_alone(&[Trust::Untrusted, Trust::Untrusted], None, None)]
    #[case::a_test(&[Trust::Test], None, Some(0))]
    #[case::a_test_first(&[Trust::Test, Trust::Trusted], Some(1), Some(0))]
    #[case::a_test_later(&[Trust::Untrusted, Trust::Trusted, Trust::Test], Some(1), Some(1))]
    fn the_first_countable_postback_counts(
        #[case] received: &[Trust],
        #[case] without_test_signals: Option<usize>,
        #[case] with_test_signals: Option<usize>,
    ) {
        assert_eq!(first_countable(received, false), without_test_signals);
        assert_eq!(first_countable(received, true), with_test_signals);
    }

    #[rstest]
    #[case::install(true, 0, DOWNLOAD, Figure::Install)]
    #[case::redownload(true, 0, AGAIN, Figure::Redownload)]
    #[case::re_engagement(true, 0, BACK, Figure::ReEngagement)]
    #[case::second(true, 1, DOWNLOAD, Figure::Later)]
    #[case::third(true, 2, DOWNLOAD, Figure::Later)]
    #[case::second_of_a_redownload(true, 1, AGAIN, Figure::Later)]
    #[case::second_of_a_re_engagement(true, 1, BACK, Figure::Later)]
    #[case::lost(false, 0, DOWNLOAD, Figure::Loss)]
    #[case::lost_redownload(false, 0, AGAIN, Figure::Loss)]
    #[case::lost_re_engagement(false, 0, BACK, Figure::Loss)]
    #[case::lost_later(false, 2, DOWNLOAD, Figure::Loss)]
    fn figures_by_result_window_and_type(
        #[case] did_win: bool,
        #[case] sequence_index: u8,
        #[case] conversion_type: ConversionType,
        #[case] expected: Figure,
    ) {
        let postback = Postback {
            sequence_index,
            did_win,
            conversion_type,
            ..postback(None)
        };
        assert_eq!(Figure::of(&postback), expected);
    }

    #[test]
    fn keywords_are_unique_and_round_trip() {
        for trust in Trust::ALL {
            assert_eq!(Trust::parse(trust.as_str()), Some(trust));
        }
        let words: std::collections::BTreeSet<_> =
            Figure::ALL.iter().map(|one| one.as_str()).collect();
        assert_eq!(words.len(), Figure::ALL.len());
    }
}
