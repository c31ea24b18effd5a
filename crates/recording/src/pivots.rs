//! Fills the pivots with clicks and events from before the pivots existed, step by step.

use crate::day_values::read_rows;
use crate::tables::{RollupPart, Tables};
use tributary_domain::access::Environment;
use tributary_domain::click::APP_OPEN_INTERVAL_MILLIS;
use tributary_domain::report::{Increments, Period, PivotFacts, PivotHistory, Rollup, RollupRows};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, ClickId, EventId};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::RollupDay;

/// Clicks or events read per query.
const PAGE_ROWS: usize = 5_000;
const ENVIRONMENTS: [Environment; 2] = [Environment::Live, Environment::Test];

/// A step: what one snapshot of the database lacks.
#[derive(Debug, Clone)]
pub struct PivotStep {
    app: AppId,
    /// Version of the history in the snapshot.
    version: i64,
    /// Time from which the pivots are complete after the step. `None` if nothing is left.
    complete_from: Option<Timestamp>,
    correction: Increments,
}

/// Prepares the next step for an app, in one snapshot and without writing. Returns `None` if the
/// app's pivots are complete.
pub async fn prepare_pivots<T: Tables>(
    tables: &T,
    app: AppId,
) -> Result<Option<PivotStep>, T::Failure> {
    let Some(history) = tables.pivot_history(app).await? else {
        return Ok(None);
    };
    let unmerged = tables.increments(app).await?;
    let mut step = PivotStep {
        app,
        version: history.version,
        complete_from: None,
        correction: Increments::default(),
    };
    let Some(latest) = find_latest(tables, app, history, &unmerged).await? else {
        return Ok(Some(step));
    };
    let mut networks = RollupRows::default();
    for environment in ENVIRONMENTS {
        let day = day_of(app, environment, latest);
        read_rows(
            tables,
            day,
            Rollup::Networks,
            RollupPart::All,
            &mut networks,
        )
        .await?;
    }
    let span = history.next_span(latest, &networks);
    let counted = count(tables, app, span).await?;
    for environment in ENVIRONMENTS {
        let stored = read_stored(tables, (app, environment), span).await?;
        let facts = PivotFacts {
            counted: &counted,
            stored: &stored,
            unmerged: &unmerged,
        };
        step.correction
            .merge(facts.correction((app, environment), span));
    }
    step.complete_from = Some(span.0);
    Ok(Some(step))
}

/// Stores a step, unless another node stored one, or a rebuild ran, since its snapshot. Returns
/// whether more may be left to fill.
pub async fn apply_pivots<T: Tables>(tables: &T, step: &PivotStep) -> Result<bool, T::Failure> {
    let PivotStep {
        app,
        version,
        complete_from,
        ref correction,
    } = *step;
    let is_current = tables
        .write_pivot_history(app, version, complete_from)
        .await?;
    if is_current {
        tables.store_increments(correction).await?;
    }
    Ok(!is_current || complete_from.is_some())
}

fn day_of(app: AppId, environment: Environment, moment: Timestamp) -> RollupDay {
    RollupDay {
        app,
        environment,
        day: Day::of(moment),
    }
}

/// Returns the latest quarter hour with figures that is not filled.
async fn find_latest<T: Tables>(
    tables: &T,
    app: AppId,
    history: PivotHistory,
    unmerged: &Increments,
) -> Result<Option<Timestamp>, T::Failure> {
    let pending = unmerged.credits.keys();
    let mut latest = pending
        .map(|key| key.at.bucket.begins_at())
        .filter(|begin| *begin < history.complete_from)
        .max();
    for environment in ENVIRONMENTS {
        let stored = tables
            .latest_figures((app, environment), history.complete_from)
            .await?;
        latest = latest.max(stored);
    }
    Ok(latest)
}

/// Counts the clicks and events of a span.
async fn count<T: Tables>(tables: &T, app: AppId, span: Period) -> Result<Increments, T::Failure> {
    let mut counted = Increments::default();
    for environment in ENVIRONMENTS {
        let (mut from, until) = (EventId::first_at(span.0), EventId::first_at(span.1));
        loop {
            let events = tables
                .events_between((app, environment), (from, until), PAGE_ROWS)
                .await?;
            let Some(last) = events.last() else { break };
            from = last.id.following();
            for event in &events {
                counted.add_event_outside_cohorts(event);
            }
        }
    }
    // The id of a click that an app reports may be that much older than the click.
    let earliest = span.0.as_millis().saturating_sub(APP_OPEN_INTERVAL_MILLIS);
    let earliest = Timestamp::from_millis(earliest);
    let (mut from, until) = (ClickId::first_at(earliest), ClickId::first_at(span.1));
    loop {
        let clicks = tables.clicks_between(app, (from, until), PAGE_ROWS).await?;
        let Some(last) = clicks.last() else { break };
        from = last.id.following();
        for click in &clicks {
            counted.add_click(click);
        }
    }
    Ok(counted)
}

/// Reads the stored pivots of a span by quarter hour, and the credits of its day.
async fn read_stored<T: Tables>(
    tables: &T,
    scope: (AppId, Environment),
    span: Period,
) -> Result<RollupRows, T::Failure> {
    let mut stored = RollupRows::default();
    let day = day_of(scope.0, scope.1, span.0);
    read_rows(tables, day, Rollup::Credits, RollupPart::Days, &mut stored).await?;
    let part = RollupPart::AllQuarters;
    let rows = tables
        .rollup_rows(Rollup::Pivots, scope, span, part)
        .await?;
    for row in rows {
        row.read_into(scope, Rollup::Pivots, &mut stored)?;
    }
    Ok(stored)
}
