//! Installs to replay under other attribution rules. Like reports, these reads never write.

use crate::{Reports, StoreResult};
use async_trait::async_trait;
use tributary_domain::access::{AppsRead, Authorized, Environment};
use tributary_domain::app::AttributionRules;
use tributary_domain::click::address::AddressHasher;
use tributary_domain::install::what_if::{
    StoredInstall, WHAT_IF_INSTALLS_MAX, WHAT_IF_PAGE_INSTALLS, WhatIf, WhatIfReport,
};
use tributary_domain::report::range::DayRange;
use tributary_domain::report::{Dimension, ReportQuery};
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::time::Timestamp;

/// The installs that a replay reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplaySpan {
    /// The oldest install; `None` if the period has none.
    pub first: Option<EventId>,
    /// Number of installs.
    pub installs: u64,
    /// Whether the period has older installs.
    pub has_older: bool,
}

/// A part of the installs to read, oldest first. Parts are read one after another, so that no
/// snapshot stays open during a replay.
#[derive(Debug, Clone)]
pub struct ReplayPart {
    /// Id to begin with.
    pub from: EventId,
    /// Whether `from` itself was read before.
    pub is_read: bool,
    /// End of the period, exclusive.
    pub until: Timestamp,
    /// Maximum number of installs.
    pub limit: u32,
    /// Hashes advertising ids as clicks contain them.
    pub hasher: AddressHasher,
}

/// Installs with the evidence of their attribution.
#[async_trait]
pub trait Replays: Send + Sync {
    /// Finds the newest installs in a period, at most `limit`, in the caller's environment.
    async fn replay_span(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        period: (Timestamp, Timestamp),
        limit: u32,
    ) -> StoreResult<ReplaySpan>;

    /// Returns a part of an app's installs with everything that a replay needs. Also returns the id
    /// of the last install that was read; `None` after the last part.
    async fn replay_part(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        part: ReplayPart,
    ) -> StoreResult<(Vec<StoredInstall>, Option<EventId>)>;
}

/// Rules to try on an app's installs.
#[derive(Debug, Clone)]
pub struct WhatIfRequest {
    /// App.
    pub app: AppId,
    /// Rules to try.
    pub rules: AttributionRules,
    /// Days of the installs and costs.
    pub range: DayRange,
    /// Hashes advertising ids.
    pub hasher: AddressHasher,
}

/// Maximum number of networks and campaigns with figures in the period, as in reports.
const REPORT_ROWS_MAX: u32 = 50_000;

/// Replays an app's installs under other rules, part by part, and writes nothing. Calls `progress`
/// before each part with the number of installs replayed so far, and the number of all.
pub async fn run_what_if<S: Replays + Reports + ?Sized>(
    store: &S,
    caller: &Authorized<AppsRead>,
    request: WhatIfRequest,
    mut progress: impl FnMut(u64, u64) + Send,
) -> StoreResult<(ReplaySpan, WhatIfReport)> {
    let app = request.app;
    let period = request.range.period();
    let span = store.replay_span(caller, app, period, WHAT_IF_INSTALLS_MAX);
    let span = span.await?;
    let begin = match span.first {
        // The limit cuts off older installs, which keep their clicks.
        Some(first) if span.has_older => first.at(),
        _ => period.0,
    };
    let mut what_if = WhatIf::new(caller.environment(), request.rules, begin);
    let mut next = span.first.map(|first| (first, false));
    while let Some((from, is_read)) = next {
        progress(what_if.installs(), span.installs);
        let part = ReplayPart {
            from,
            is_read,
            until: period.1,
            limit: WHAT_IF_PAGE_INSTALLS,
            hasher: request.hasher.clone(),
        };
        let (installs, last) = store.replay_part(caller, app, part).await?;
        what_if.add(installs);
        next = last.map(|last| (last, true));
    }
    let costs = match caller.environment() {
        Environment::Test => None,
        // Costs of the days whose installs are left out would make installs look expensive.
        Environment::Live if span.has_older => None,
        Environment::Live => {
            let reader = caller.analytics_access();
            let DayRange { from, to, .. } = request.range;
            let sums = store.cost_sums(&reader, vec![app], from, to).await?;
            Some(sums.into_iter().map(|(_, sum)| sum).collect())
        }
    };
    // Of the installs that are left out, it is not known which would move.
    let reported = if span.has_older {
        None
    } else {
        let reader = caller.analytics_access();
        let query = ReportQuery {
            periods: vec![period],
            group_by: vec![Dimension::Network, Dimension::Campaign],
            filters: Vec::new(),
            rows_max: REPORT_ROWS_MAX,
        };
        Some(store.stats(&reader, app, query).await?)
    };
    Ok((span, what_if.finish(costs, reported.as_deref())))
}
