//! SKAdNetwork and AdAttributionKit postbacks.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{AnalyticsRead, AppsRead, Authorized};
use tributary_domain::report::postback::{PostbackCounting, PostbackFigures, ReceivedPostback};
use tributary_domain::skan::CoarseValue;
use tributary_domain::skan::decode::DocumentVersion;
use tributary_domain::skan::postback::{ConversionType, ParsedPostback, Protocol, Signature};
use tributary_domain::vocabulary::id::{AppId, PostbackId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;

/// Maximum number of waiting postbacks that are assigned to an app in the transaction that sets its
/// App Store id. [`Postbacks::claim_postbacks`] assigns the others later, so that the change stays
/// fast.
pub const CLAIMED_AT_ONCE_MAX: u32 = 500;

/// Outcome of accepting a postback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostbackOutcome {
    /// Stored for an app.
    Stored,
    /// Already stored. Nothing changed.
    Duplicate,
    /// No app has the postback's App Store id. The postback waits for such an app.
    Unclaimed,
    /// Too many postbacks with the same deduplication key are stored. Nothing changed.
    Dropped,
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
    /// Whether the postback always counts, never counts, or counts depending on
    /// `accept_test_signals`.
    pub counting: PostbackCounting,
    /// Whether an earlier postback with the same deduplication key has a different body.
    pub conflicting: bool,
}

/// Filter for postbacks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PostbackFilter {
    /// Framework.
    pub protocol: Option<Protocol>,
    /// State of the signature.
    pub signature: Option<Signature>,
    /// Whether the postback counts now.
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
    /// Latest time of arrival, exclusive.
    pub until: Option<Timestamp>,
}

/// A page of postbacks, with the data to interpret them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostbackPage {
    /// The postbacks, newest first.
    pub page: Page<StoredPostback>,
    /// All versions of the conversion-value mapping. The current version has the latest names,
    /// because renaming a value creates no new version.
    pub versions: Vec<DocumentVersion>,
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
    /// By campaign id, which only older SKAdNetwork versions have.
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
    /// Dimensions to group by, besides the period.
    pub group_by: PostbackDimensions,
    /// Only this ad network, in lower case.
    pub ad_network_id: Option<String>,
    /// Only this framework.
    pub protocol: Option<Protocol>,
    /// Maximum number of rows.
    pub rows_max: u32,
}

/// A row of postback figures. A dimension is `None` when it was not requested or the postbacks do
/// not contain it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostbackStats {
    /// Index of the period.
    pub period: usize,
    /// The framework.
    pub protocol: Option<Protocol>,
    /// The ad network.
    pub ad_network_id: Option<String>,
    /// The source identifier, with as many digits as requested. `None` if Apple sent fewer digits.
    pub source_identifier: Option<String>,
    /// The campaign id.
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

/// Postbacks. They are live data; a caller with a test key finds none.
#[async_trait]
pub trait Postbacks: Send + Sync {
    /// Stores a postback once for the app with the postback's App Store id, and counts it
    /// (`domain::report::postback::decide_postback`). If no app has this id yet, the postback is
    /// stored as unclaimed until an app gets the id.
    async fn accept_postback(&self, arrival: ReceivedPostback) -> StoreResult<PostbackOutcome>;

    /// Lists an app's postbacks, latest arrival first.
    async fn postbacks(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        filter: PostbackFilter,
        page: PageRequest,
    ) -> StoreResult<PostbackPage>;

    /// Returns figures for the postbacks that count now. Rows of zeros are omitted.
    async fn postback_stats(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        query: PostbackReportQuery,
    ) -> StoreResult<Vec<PostbackStats>>;

    /// Assigns at most `limit` waiting postbacks to the apps that now have their App Store ids.
    /// Returns the number of assigned postbacks.
    async fn claim_postbacks(&self, limit: u32) -> StoreResult<u64>;

    /// Removes at most `limit` postbacks received before `before`. Their counts stay, and so do
    /// their deduplication keys, except those of unverified postbacks. Returns the number of
    /// removed postbacks.
    async fn remove_postbacks(&self, before: Timestamp, limit: u32) -> StoreResult<u64>;

    /// Removes at most `limit` unclaimed postbacks received before `before`. Returns the number of
    /// removed postbacks.
    async fn remove_unclaimed_postbacks(&self, before: Timestamp, limit: u32) -> StoreResult<u64>;
}
