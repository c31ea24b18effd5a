//! Figures of dimensions that no roll-up tells apart together: counted from the log, as far as that can be done
//! while somebody waits.

use crate::error::ApiError;
use crate::report::out_of_range;
use crate::state::ApiState;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::report::tally::{EventLogTally, TALLY_ROWS_MAX};
use tributary_domain::report::{Period, ReportQuery, StatsRow};
use tributary_domain::vocabulary::id::AppId;
use tributary_store::LogPart;

/// Events that are read at a time.
const PART_EVENTS: u32 = 5_000;

/// Counts from the log what the question asks for.
pub(super) async fn count(
    state: &ApiState,
    caller: &Authorized<AnalyticsRead>,
    app: AppId,
    whole: Period,
    question: &ReportQuery,
) -> Result<Vec<StatsRow>, ApiError> {
    refuse_too_many(state, caller, app, whole).await?;
    let mut tally = EventLogTally::new(question);
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

/// The roll-ups know how much there is to be read.
async fn refuse_too_many(
    state: &ApiState,
    caller: &Authorized<AnalyticsRead>,
    app: AppId,
    whole: Period,
) -> Result<(), ApiError> {
    let question = ReportQuery {
        periods: vec![whole],
        group_by: Vec::new(),
        filters: Vec::new(),
        rows_max: 1,
    };
    let rows = state.store.stats(caller, app, question).await?;
    let all = |row: &StatsRow| row.figures.events.saturating_add(row.figures.clicks);
    let count: i64 = rows.iter().map(all).sum();
    if count <= TALLY_ROWS_MAX {
        return Ok(());
    }
    let message = format!(
        "These dimensions are not counted together beforehand, and there are more than {TALLY_ROWS_MAX} clicks and \
         events to be read; ask for fewer days, or for dimensions of one kind: network, link, campaign, adset \
         and ad; event and source; country and platform."
    );
    Err(out_of_range("groupBy", message))
}
