//! What postbacks count. These figures stand beside those of devices and are never added to them: the same install
//! is usually in both.

use super::{Counting, ReceivedPostback};
use crate::report::Bucket;
use crate::skan::CoarseValue;
use crate::skan::counting::Figure;
use crate::skan::postback::{Postback, Protocol};
use crate::vocabulary::id::AppId;
use std::collections::BTreeMap;

/// What is counted. A postback counts in exactly one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PostbackFigures {
    /// First-time installs that the ad network won.
    pub installs: i64,
    /// Installs by those who had the app before.
    pub redownloads: i64,
    /// People who have the app and came back through an ad.
    pub reengagements: i64,
    /// Second and third postbacks: a value, never an install.
    pub later: i64,
    /// Conversions that another ad network won.
    pub losses: i64,
}

impl PostbackFigures {
    /// How many there are.
    pub const COUNT: usize = 5;

    /// The columns, in the order of [`Self::values`].
    pub const COLUMNS: [&'static str; Self::COUNT] = [
        "installs",
        "redownloads",
        "reengagements",
        "later",
        "losses",
    ];

    /// What one postback counts.
    pub fn of(postback: &Postback) -> Self {
        let mut figures = Self::default();
        let place = match Figure::of(postback) {
            Figure::Install => &mut figures.installs,
            Figure::Redownload => &mut figures.redownloads,
            Figure::ReEngagement => &mut figures.reengagements,
            Figure::Later => &mut figures.later,
            Figure::Loss => &mut figures.losses,
        };
        *place = 1;
        figures
    }

    /// One number a column.
    pub const fn values(&self) -> [i64; Self::COUNT] {
        [
            self.installs,
            self.redownloads,
            self.reengagements,
            self.later,
            self.losses,
        ]
    }

    /// Reads what [`Self::values`] gave.
    pub const fn from_values(values: [i64; Self::COUNT]) -> Self {
        Self {
            installs: values[0],
            redownloads: values[1],
            reengagements: values[2],
            later: values[3],
            losses: values[4],
        }
    }

    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        let mut sum = self.values();
        for (total, value) in sum.iter_mut().zip(other.values()) {
            *total = total.saturating_add(value);
        }
        *self = Self::from_values(sum);
    }

    /// All of them.
    pub fn postbacks(&self) -> i64 {
        self.values().iter().sum()
    }
}

/// By what postbacks are counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PostbackSlice {
    /// Whose they are.
    pub app: AppId,
    /// When they came.
    pub bucket: Bucket,
    /// When they count.
    pub counting: Counting,
    /// By which of the two ways.
    pub protocol: Protocol,
    /// The ad network, in lower case.
    pub ad_network_id: String,
    /// Two to four digits; empty where there is none.
    pub source_identifier: String,
    /// 0 where there is none.
    pub campaign_id: i64,
    /// The window.
    pub sequence_index: u8,
    /// Nothing where it was withheld, or is a coarse one.
    pub fine_value: Option<u8>,
    /// Nothing where it was withheld, or is a fine one.
    pub coarse_value: Option<CoarseValue>,
}

impl PostbackSlice {
    /// Where a postback counts.
    pub fn of(app: AppId, arrival: &ReceivedPostback, counting: Counting) -> Self {
        let postback = &arrival.parsed.postback;
        Self {
            app,
            bucket: Bucket::of(arrival.received_at),
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

/// What a transaction adds, sorted by key: everybody writes them in the same order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PostbackCounts(pub BTreeMap<PostbackSlice, PostbackFigures>);

impl PostbackCounts {
    /// Counts one. What never counts is not counted, whatever anybody switches.
    pub fn add(&mut self, app: AppId, arrival: &ReceivedPostback, counting: Counting) {
        if counting == Counting::Never {
            return;
        }
        let slice = PostbackSlice::of(app, arrival, counting);
        let figures = PostbackFigures::of(&arrival.parsed.postback);
        self.0.entry(slice).or_default().add(&figures);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::arrival;
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
        let mut one = arrival(Signature::Valid, "{}").parsed.postback;
        (one.did_win, one.sequence_index) = (did_win, sequence_index);
        one.conversion_type = conversion_type;
        assert_eq!(PostbackFigures::of(&one).values(), expected);
    }

    #[test]
    fn what_never_counts_is_not_counted_and_the_rest_adds_up() {
        let app = AppId::from_bytes([1; 16]);
        let mut counts = PostbackCounts::default();
        let arrival = arrival(Signature::Valid, "{}");
        counts.add(app, &arrival, Counting::Never);
        assert!(counts.0.is_empty());
        for _ in 0..3 {
            counts.add(app, &arrival, Counting::Always);
        }
        counts.add(app, &arrival, Counting::WithTests);
        let sums: Vec<(Counting, i64)> = counts
            .0
            .iter()
            .map(|(slice, figures)| (slice.counting, figures.postbacks()))
            .collect();
        assert_eq!(sums, [(Counting::Always, 3), (Counting::WithTests, 1)]);
        let slice = counts.0.keys().next().unwrap();
        assert_eq!(slice.ad_network_id, "example123.skadnetwork");
    }
}
