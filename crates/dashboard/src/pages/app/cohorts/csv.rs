//! `GET /apps/{app}/cohorts.csv` — the cohort table as CSV: the same measure, filters and ages as on
//! the page, with all rows.

use super::report::{CohortsReport, describe, load_report};
use crate::access::ReportContext;
use crate::analysis::{AnalysisBar, ReportKind};
use crate::failure::Failure;
use crate::response::csv_file;
use crate::state::DashboardHandles;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::resource::CohortsRead;
use tributary_domain::report::cohort::Cohort;
use tributary_domain::report::{Dimension, report_file_name};
use tributary_domain::vocabulary::money::Amount;

/// Returns the file.
pub(crate) async fn csv(
    State(handles): State<DashboardHandles>,
    context: ReportContext<CohortsRead>,
) -> Result<Response, Failure> {
    let caller = context.authorized.analytics_access();
    let bar = AnalysisBar::for_report(ReportKind::Cohorts, &handles, &context, &caller).await?;
    let found = load_report(&handles, &context, &caller, &bar)
        .await?
        .map_err(|_| Failure::NotFound)?;
    let ages = found.ages();
    let rows = found.cohorts.iter();
    let rows = rows.map(|cohort| row(&found, cohort, &ages));
    let name = report_file_name(context.app()?.name.as_str(), "cohorts", &bar.range.days);
    Ok(csv_file(&name, heads(&found, &ages), rows))
}

fn heads(found: &CohortsReport, ages: &[u8]) -> Vec<String> {
    let mut heads = vec!["cohort".to_owned()];
    heads.extend(found.by.map(|by| by.as_str().to_owned()));
    heads.push("installs".to_owned());
    if found.measure.needs_cost() {
        heads.push("cost".to_owned());
    }
    // Values at later ages are not final.
    heads.push("completeAge".to_owned());
    let measure = found.measure.as_str();
    heads.extend(ages.iter().map(|age| format!("{measure} D{age}")));
    heads
}

fn row(found: &CohortsReport, cohort: &Cohort, ages: &[u8]) -> Vec<String> {
    let (_, unit) = describe(found.measure);
    let mut row = vec![found.plain_period(cohort).to_owned()];
    if let Some((value, label)) = found.group_value(cohort) {
        row.push(match value {
            "" => "none".to_owned(),
            // A link's name says more than its id.
            _ if found.by == Some(Dimension::Link) => label,
            value => value.to_owned(),
        });
    }
    row.push(cohort.installs.to_string());
    if found.measure.needs_cost() {
        let cost = cohort
            .cost
            .map(|cost| Amount::from_micros(cost).to_string());
        row.push(cost.unwrap_or_default());
    }
    let complete = cohort.complete_age().map(|age| age.to_string());
    row.push(complete.unwrap_or_default());
    let value = |age: &u8| {
        let value = cohort.at(*age).and_then(|at| found.value(&at.sums));
        value.map(|value| unit.plain(value)).unwrap_or_default()
    };
    row.extend(ages.iter().map(value));
    row
}
