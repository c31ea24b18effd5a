//! Figures for dimension combinations that no roll-up covers. They are counted from the event and
//! click logs, if the logs are small enough for a synchronous request.

use crate::error::ApiError;
use crate::report::out_of_range;
use crate::state::ApiState;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::report::tally::{EventLogTally, TALLY_ROWS_MAX};
use tributary_domain::report::{Period, ReportQuery, StatsRow};
use tributary_domain::vocabulary::id::AppId;
use tributary_store::LogPart;

/// Maximum number of events or clicks per read.
const PART_EVENTS: u32 = 5_000;

/// Counts the requested figures from the logs. Check first that there are not too many.
pub(super) async fn count(
    state: &ApiState,
    caller: &Authorized<AnalyticsRead>,
    app: AppId,
    whole: Period,
    report_query: &ReportQuery,
) -> Result<Vec<StatsRow>, ApiError> {
    let mut tally = EventLogTally::new(report_query);
    let mut part = LogPart {
        after: None,
        from: whole.0,
        until: whole.1,
        limit: PART_EVENTS,
    };
    loop {
        let events = state.store.log_events(caller, app, part, false).await?;
        for event in &events {
            tally.add_event(event);
        }
        let Some(last) = events.last() else { break };
        part.after = Some(last.id);
    }
    let mut part = LogPart {
        after: None,
        from: whole.0,
        until: whole.1,
        limit: PART_EVENTS,
    };
    loop {
        let clicks = state.store.log_clicks(caller, app, part).await?;
        for click in &clicks {
            tally.add_click(click);
        }
        let Some(last) = clicks.last() else { break };
        part.after = Some(last.id);
    }
    Ok(tally.into_rows())
}

/// Returns whether a range has few enough clicks and events. Their number comes from the roll-ups.
pub(super) async fn is_countable(
    state: &ApiState,
    caller: &Authorized<AnalyticsRead>,
    app: AppId,
    whole: Period,
) -> Result<bool, ApiError> {
    let report_query = ReportQuery {
        periods: vec![whole],
        group_by: Vec::new(),
        filters: Vec::new(),
        rows_max: 1,
    };
    let rows = state.store.stats(caller, app, report_query).await?;
    let all = |row: &StatsRow| row.figures.events.saturating_add(row.figures.clicks);
    let count: i64 = rows.iter().map(all).sum();
    Ok(count <= TALLY_ROWS_MAX)
}

/// Rejects a range with too many clicks and events.
pub(super) async fn require_countable(
    state: &ApiState,
    caller: &Authorized<AnalyticsRead>,
    app: AppId,
    whole: Period,
) -> Result<(), ApiError> {
    if is_countable(state, caller, app, whole).await? {
        return Ok(());
    }
    let message = format!(
        "No roll-up covers this combination of dimensions, and the range has more than \
         {TALLY_ROWS_MAX} clicks and events. Request fewer days, or only dimensions from one of \
         these groups: network, link, campaign, adset and ad; network, campaign, country and \
         platform; event and source."
    );
    Err(out_of_range("groupBy", message))
}
