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

/// Postbacks that an app gets with the App Store id that they waited for, in the transaction that gives it the id. The
/// others follow with [`Postbacks::claim_postbacks`]: nobody's change may wait for a month of them.
pub const CLAIMED_AT_ONCE_MAX: u32 = 500;

/// What became of a postback that is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PostbackOutcome {
    /// An app has it.
    Stored,
    /// It was here before; nothing changed.
    Duplicate,
    /// No app has its App Store id. It waits for one.
    Unclaimed,
}

/// A postback of an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPostback {
    /// Its id.
    pub id: PostbackId,
    /// When it came.
    pub received_at: Timestamp,
    /// What it says, and what its signature is worth.
    pub parsed: ParsedPostback,
    /// When it counts.
    pub counting: Counting,
    /// Whether another body came under its key before.
    pub conflicting: bool,
}

/// Which postbacks are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PostbackFilter {
    /// Of this framework.
    pub protocol: Option<Protocol>,
    /// With a signature of this worth.
    pub signature: Option<Signature>,
    /// That count now, or do not.
    pub counted: Option<bool>,
    /// Of this ad network, in lower case.
    pub ad_network_id: Option<String>,
    /// Whose source identifier ends with these digits: the shorter forms are the last digits of the longer one.
    pub source_identifier: Option<String>,
    /// Of this window.
    pub sequence_index: Option<u8>,
    /// Won, or lost.
    pub did_win: Option<bool>,
    /// Of this kind.
    pub conversion_type: Option<ConversionType>,
    /// That came at this moment or later.
    pub from: Option<Timestamp>,
    /// That came before this moment.
    pub until: Option<Timestamp>,
}

/// A page of postbacks, with what is needed to read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostbackPage {
    /// The postbacks, newest first.
    pub page: Page<StoredPostback>,
    /// Every version of the conversion values there has been, the present one under its present names.
    pub versions: Vec<Version>,
    /// Whether the app wants tests to count.
    pub accept_test_signals: bool,
}

/// By what figures of postbacks are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PostbackDimensions {
    /// By framework.
    pub protocol: bool,
    /// By ad network.
    pub ad_network_id: bool,
    /// By the last so many digits of the source identifier: 2, 3 or 4.
    pub source_digits: Option<u8>,
    /// By the campaigns of the older versions.
    pub campaign_id: bool,
    /// By window.
    pub sequence_index: bool,
    /// By fine value.
    pub fine_value: bool,
    /// By coarse value.
    pub coarse_value: bool,
}

/// What is asked of the figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostbackReportQuery {
    /// Periods that are told apart, one after the other: from a moment until before another.
    pub periods: Vec<(Timestamp, Timestamp)>,
    /// What else is told apart.
    pub group_by: PostbackDimensions,
    /// Of this ad network only, in lower case.
    pub ad_network_id: Option<String>,
    /// Of this framework only.
    pub protocol: Option<Protocol>,
    /// Rows, at most.
    pub rows_max: u32,
}

/// One row of figures. What was not asked for is nothing, and so is what the postbacks do not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostbackStats {
    /// Which of the periods.
    pub period: usize,
    /// The framework.
    pub protocol: Option<Protocol>,
    /// The ad network.
    pub ad_network_id: Option<String>,
    /// So many digits as were asked for. Nothing where Apple told fewer.
    pub source_identifier: Option<String>,
    /// The campaign.
    pub campaign_id: Option<i64>,
    /// The window.
    pub sequence_index: Option<u8>,
    /// The fine value.
    pub fine_value: Option<u8>,
    /// The coarse value.
    pub coarse_value: Option<CoarseValue>,
    /// The figures.
    pub figures: PostbackFigures,
    /// Those of them that won and have no value at all.
    pub withheld: i64,
}

/// Postbacks. They are live data: a test key finds none.
#[async_trait]
pub trait Postbacks: Send + Sync {
    /// Stores a postback once, with what it counts, for the app that has its App Store id
    /// (`domain::report::postback::course`). One of no app is kept for whoever gets the id.
    async fn accept_postback(&self, arrival: ReceivedPostback) -> StoreResult<PostbackOutcome>;

    /// The postbacks of an app, newest first by their arrival.
    async fn postbacks(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        filter: PostbackFilter,
        page: PageRequest,
    ) -> StoreResult<PostbackPage>;

    /// Figures of the postbacks that count now. Rows without any are left out.
    async fn postback_stats(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        question: PostbackReportQuery,
    ) -> StoreResult<Vec<PostbackStats>>;

    /// Gives postbacks that waited to the apps that have their App Store ids by now, at most `limit`. Gives how many.
    async fn claim_postbacks(&self, limit: u32) -> StoreResult<u64>;

    /// Removes postbacks that came before a moment, at most `limit` of them; gives how many. What they counted stays,
    /// and so does that they counted.
    async fn remove_postbacks(&self, before: Timestamp, limit: u32) -> StoreResult<u64>;

    /// Removes postbacks of no app that came before a moment, at most `limit` of them; gives how many.
    async fn remove_unclaimed_postbacks(&self, before: Timestamp, limit: u32) -> StoreResult<u64>;
}
