//! Postback figures. They are never added to device figures, because most installs are counted in
//! both.

use super::{PostbackCounting, ReceivedPostback};
use crate::report::Bucket;
use crate::skan::CoarseValue;
use crate::skan::counting::Figure;
use crate::skan::postback::{Postback, Protocol};
use crate::vocabulary::id::AppId;
use std::collections::BTreeMap;

/// Counted figures. A postback counts in exactly one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PostbackFigures {
    /// First-time installs that the ad network won.
    pub installs: i64,
    /// Installs by people who had the app before.
    pub redownloads: i64,
    /// Returns to an installed app through an ad.
    pub reengagements: i64,
    /// Second and third postbacks, which report a value but no install.
    pub later: i64,
    /// Conversions that another ad network won.
    pub losses: i64,
}

impl PostbackFigures {
    /// Number of figures.
    pub const COUNT: usize = 5;

    /// Column names, in the order of [`Self::values`].
    pub const COLUMNS: [&'static str; Self::COUNT] = [
        "installs",
        "redownloads",
        "reengagements",
        "later",
        "losses",
    ];

    /// Returns the figures for one postback.
    pub fn of(postback: &Postback) -> Self {
        let mut figures = Self::default();
        let figure = match Figure::of(postback) {
            Figure::Install => &mut figures.installs,
            Figure::Redownload => &mut figures.redownloads,
            Figure::ReEngagement => &mut figures.reengagements,
            Figure::Later => &mut figures.later,
            Figure::Loss => &mut figures.losses,
        };
        *figure = 1;
        figures
    }

    /// Returns one number per column.
    pub const fn values(&self) -> [i64; Self::COUNT] {
        [
            self.installs,
            self.redownloads,
            self.reengagements,
            self.later,
            self.losses,
        ]
    }

    /// Builds figures from the numbers of [`Self::values`].
    pub const fn from_values(values: [i64; Self::COUNT]) -> Self {
        Self {
            installs: values[0],
            redownloads: values[1],
            reengagements: values[2],
            later: values[3],
            losses: values[4],
        }
    }

    /// Adds `other`.
    pub fn add(&mut self, other: &Self) {
        let mut sum = self.values();
        for (total, value) in sum.iter_mut().zip(other.values()) {
            *total = total.saturating_add(value);
        }
        *self = Self::from_values(sum);
    }

    /// Returns the number of postbacks.
    pub fn postbacks(&self) -> i64 {
        self.values().iter().sum()
    }
}

/// Key that postbacks are counted by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PostbackSlice {
    /// The app.
    pub app: AppId,
    /// Bucket that contains the time of receipt.
    pub bucket: Bucket,
    /// When the postbacks count.
    pub counting: PostbackCounting,
    /// Protocol of the postbacks.
    pub protocol: Protocol,
    /// Ad network id in lower case.
    pub ad_network_id: String,
    /// Source identifier of two to four digits; empty if absent.
    pub source_identifier: String,
    /// Campaign id; 0 if absent.
    pub campaign_id: i64,
    /// Postback window.
    pub sequence_index: u8,
    /// Fine value; `None` if withheld or coarse.
    pub fine_value: Option<u8>,
    /// Coarse value; `None` if withheld or fine.
    pub coarse_value: Option<CoarseValue>,
}

impl PostbackSlice {
    /// Returns the key of a postback.
    pub fn of(app: AppId, received: &ReceivedPostback, counting: PostbackCounting) -> Self {
        let postback = &received.parsed.postback;
        Self {
            app,
            bucket: Bucket::of(received.received_at),
            counting,
            protocol: postback.protocol,
            ad_network_id: postback.ad_network_id.to_lowercase(),
            source_identifier: postback.source_identifier.clone().unwrap_or_default(),
            campaign_id: postback.campaign_id.unwrap_or(0),
            sequence_index: postback.sequence_index,
            fine_value: postback.fine_value,
            coarse_value: postback.coarse_value,
        }
    }
}

/// Figures that a transaction adds. Sorted by key, so that all transactions lock rows in the same
/// order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PostbackCounts(pub BTreeMap<PostbackSlice, PostbackFigures>);

impl PostbackCounts {
    /// Counts a postback, unless it can never count.
    pub fn add(&mut self, app: AppId, received: &ReceivedPostback, counting: PostbackCounting) {
        if counting == PostbackCounting::Never {
            return;
        }
        let slice = PostbackSlice::of(app, received, counting);
        let figures = PostbackFigures::of(&received.parsed.postback);
        self.0.entry(slice).or_default().add(&figures);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::received;
    use super::*;
    use crate::skan::postback::{ConversionType, Signature};
    use rstest::rstest;

    #[rstest]
    #[case::install(true, 0, ConversionType::Download, [1, 0, 0, 0, 0])]
    #[case::redownload(true, 0, ConversionType::Redownload, [0, 1, 0, 0, 0])]
    #[case::reengagement(true, 0, ConversionType::ReEngagement, [0, 0, 1, 0, 0])]
    #[case::second_window(true, 1, ConversionType::Download, [0, 0, 0, 1, 0])]
    #[case::third_window(true, 2, ConversionType::Redownload, [0, 0, 0, 1, 0])]
    #[case::lost(false, 0, ConversionType::Download, [0, 0, 0, 0, 1])]
    fn a_postback_counts_in_one_figure(
        #[case] did_win: bool,
        #[case] sequence_index: u8,
        #[case] conversion_type: ConversionType,
        #[case] expected: [i64; PostbackFigures::COUNT],
    ) {
        let mut one = received(Signature::Valid, "{}").parsed.postback;
        (one.did_win, one.sequence_index) = (did_win, sequence_index);
        one.conversion_type = conversion_type;
        assert_eq!(PostbackFigures::of(&one).values(), expected);
    }

    #[test]
    fn postbacks_that_never_count_are_skipped() {
        let app = AppId::from_bytes([1; 16]);
        let mut counts = PostbackCounts::default();
        let received = received(Signature::Valid, "{}");
        counts.add(app, &received, PostbackCounting::Never);
        assert!(counts.0.is_empty());
        for _ in 0..3 {
            counts.add(app, &received, PostbackCounting::Always);
        }
        counts.add(app, &received, PostbackCounting::WithTests);
        let sums: Vec<(PostbackCounting, i64)> = counts
            .0
            .iter()
            .map(|(slice, figures)| (slice.counting, figures.postbacks()))
            .collect();
        assert_eq!(
            sums,
            [
                (PostbackCounting::Always, 3),
                (PostbackCounting::WithTests, 1)
            ]
        );
        let slice = counts.0.keys().next().unwrap();
        assert_eq!(slice.ad_network_id, "example123.skadnetwork");
    }
}
