//! Which postbacks count, and as what.
//!
//! These figures stand beside those of the devices and are never added to them: the same install is
//! usually in both.

use crate::skan::postback::{ConversionType, Postback, Signature};

/// Whether a postback may count at all. Kept with it; the switch of the app is asked when reporting,
/// so that turning it judges what is stored anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trust {
    /// `trusted`: Apple signed it.
    Trusted,
    /// `test`: a test, or signed with a development key. Anyone with a phone can make one.
    Test,
    /// `untrusted`: nobody knows who made it.
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
    /// How far a postback is to be trusted.
    pub fn of(postback: &Postback, signature: Signature) -> Self {
        match signature {
            Signature::Valid if !postback.is_test() => Self::Trusted,
            Signature::Valid | Signature::Development => Self::Test,
            Signature::Invalid | Signature::Unverifiable => Self::Untrusted,
        }
    }

    /// Whether it may count, by the app's `acceptTestSignals`.
    pub const fn may_count(self, accept_test_signals: bool) -> bool {
        match self {
            Self::Trusted => true,
            Self::Test => accept_test_signals,
            Self::Untrusted => false,
        }
    }
}

/// Which of the postbacks with one key counts, given in the order they were received: the first that
/// may. One that may not never takes the place of one that arrives later.
pub fn first_countable(received: &[Trust], accept_test_signals: bool) -> Option<usize> {
    received
        .iter()
        .position(|trust| trust.may_count(accept_test_signals))
}

/// The figure that a postback which counts is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Figure {
    /// An install that this network is credited with.
    Install,
    /// Someone who had the app before.
    Redownload,
    /// Someone who has the app and came back.
    ReEngagement,
    /// A later value of an install that was counted already.
    Later,
    /// Another network won. Kept, and never an install.
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
    /// The figure of a postback.
    pub const fn of(postback: &Postback) -> Self {
        Self::from_parts(
            postback.did_win,
            postback.sequence_index,
            postback.conversion_type,
        )
    }

    /// The figure, from what decides it.
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
    fn what_may_count(
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
    fn the_first_that_may_count_does(
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
    fn what_it_counts_as(
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
    fn every_word_is_its_own() {
        for trust in Trust::ALL {
            assert_eq!(Trust::parse(trust.as_str()), Some(trust));
        }
        let words: std::collections::BTreeSet<_> =
            Figure::ALL.iter().map(|one| one.as_str()).collect();
        assert_eq!(words.len(), Figure::ALL.len());
    }
}
