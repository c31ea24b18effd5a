//! Postbacks of SKAdNetwork and AdAttributionKit.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{AnalyticsRead, AppsRead, Authorized};
use tributary_domain::report::postback::{Counting, PostbackFigures, ReceivedPostback};
use tributary_domain::skan::CoarseValue;
use tributary_domain::skan::decode::Version;
use tributary_domain::skan::postback::{ConversionType, ParsedPostback, Protocol, Signature};
use tributary_domain::vocabulary::id::{AppId, PostbackId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;

/// Number of waiting postbacks that an app gets in the transaction that sets its App Store id.
/// [`Postbacks::claim_postbacks`] assigns the others later, so that the change stays fast.
pub const CLAIMED_AT_ONCE_MAX: u32 = 500;

/// Outcome of a durable postback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostbackOutcome {
    /// Stored for an app.
    Stored,
    /// Already stored. Nothing changed.
    Duplicate,
    /// No app has its App Store id. It waits for one.
    Unclaimed,
}

/// A postback of an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPostback {
    /// Postback id.
    pub id: PostbackId,
    /// Time of arrival.
    pub received_at: Timestamp,
    /// Parsed postback and the state of its signature.
    pub parsed: ParsedPostback,
    /// When it counts.
    pub counting: Counting,
    /// Whether an earlier postback with its key has another body.
    pub conflicting: bool,
}

/// Filter for postbacks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PostbackFilter {
    /// Framework.
    pub protocol: Option<Protocol>,
    /// State of the signature.
    pub signature: Option<Signature>,
    /// Whether it counts now.
    pub counted: Option<bool>,
    /// Ad network, in lower case.
    pub ad_network_id: Option<String>,
    /// Last digits of the source identifier. Shorter identifiers are the last digits of longer
    /// ones.
    pub source_identifier: Option<String>,
    /// Conversion window.
    pub sequence_index: Option<u8>,
    /// Whether the ad network won the attribution.
    pub did_win: Option<bool>,
    /// Conversion type.
    pub conversion_type: Option<ConversionType>,
    /// Earliest time of arrival.
    pub from: Option<Timestamp>,
    /// End of the time of arrival, exclusive.
    pub until: Option<Timestamp>,
}

/// A page of postbacks, with the data to interpret them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostbackPage {
    /// The postbacks, newest first.
    pub page: Page<StoredPostback>,
    /// All versions of the conversion values. The current one has its current names.
    pub versions: Vec<Version>,
    /// Whether test postbacks count.
    pub accept_test_signals: bool,
}

/// Dimensions that postback figures are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PostbackDimensions {
    /// By framework.
    pub protocol: bool,
    /// By ad network.
    pub ad_network_id: bool,
    /// By the last 2, 3 or 4 digits of the source identifier.
    pub source_digits: Option<u8>,
    /// By campaign id, which older SKAdNetwork versions have.
    pub campaign_id: bool,
    /// By conversion window.
    pub sequence_index: bool,
    /// By fine value.
    pub fine_value: bool,
    /// By coarse value.
    pub coarse_value: bool,
}

/// A query for postback figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostbackReportQuery {
    /// Periods to report separately, each with an exclusive end.
    pub periods: Vec<(Timestamp, Timestamp)>,
    /// Other dimensions.
    pub group_by: PostbackDimensions,
    /// Only this ad network, in lower case.
    pub ad_network_id: Option<String>,
    /// Only this framework.
    pub protocol: Option<Protocol>,
    /// Maximum number of rows.
    pub rows_max: u32,
}

/// A row of postback figures. A field is `None` when it was not requested or the postbacks do not
/// contain it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostbackStats {
    /// Index of the period.
    pub period: usize,
    /// The framework.
    pub protocol: Option<Protocol>,
    /// The ad network.
    pub ad_network_id: Option<String>,
    /// As many digits as requested. `None` where Apple sent fewer.
    pub source_identifier: Option<String>,
    /// The campaign.
    pub campaign_id: Option<i64>,
    /// The conversion window.
    pub sequence_index: Option<u8>,
    /// The fine value.
    pub fine_value: Option<u8>,
    /// The coarse value.
    pub coarse_value: Option<CoarseValue>,
    /// The figures.
    pub figures: PostbackFigures,
    /// Number of winning postbacks without a conversion value.
    pub withheld: i64,
}

/// Postbacks. They are live data; a test key finds none.
#[async_trait]
pub trait Postbacks: Send + Sync {
    /// Stores a postback once, with its counts, for the app with its App Store id
    /// (`domain::report::postback::decide_postback`). Without such an app, it waits for one.
    async fn accept_postback(&self, arrival: ReceivedPostback) -> StoreResult<PostbackOutcome>;

    /// Lists the postbacks of an app, latest arrival first.
    async fn postbacks(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        filter: PostbackFilter,
        page: PageRequest,
    ) -> StoreResult<PostbackPage>;

    /// Returns figures of the postbacks that count now. Rows of zeros are omitted.
    async fn postback_stats(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        query: PostbackReportQuery,
    ) -> StoreResult<Vec<PostbackStats>>;

    /// Assigns at most `limit` waiting postbacks to the apps that have their App Store ids now.
    /// Returns their number.
    async fn claim_postbacks(&self, limit: u32) -> StoreResult<u64>;

    /// Removes at most `limit` postbacks received before `before`. Returns their number. Their
    /// counts and deduplication keys stay.
    async fn remove_postbacks(&self, before: Timestamp, limit: u32) -> StoreResult<u64>;

    /// Removes at most `limit` unclaimed postbacks received before `before`. Returns their number.
    async fn remove_unclaimed_postbacks(&self, before: Timestamp, limit: u32) -> StoreResult<u64>;
}
