//! JSON form of report rows.

use crate::page::List;
use crate::report::figures::{self, FiguresOut};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tributary_domain::report::{GroupBy, ReportFigures};
use utoipa::ToSchema;

/// A row with the requested dimensions and the figures.
#[derive(Debug, Serialize)]
pub(super) struct StatsOut {
    #[serde(flatten)]
    dimensions: Map<String, Value>,
    #[serde(flatten)]
    figures: FiguresOut,
}

impl StatsOut {
    /// Builds a row; a missing value is null.
    pub(super) fn of(
        label: &str,
        values: &[String],
        group: &GroupBy,
        measured: &ReportFigures,
    ) -> Self {
        let mut dimensions = Map::new();
        if let Some(unit) = group.time {
            dimensions.insert(unit.as_str().to_owned(), json!(label));
        }
        for (dimension, value) in group.dimensions.iter().zip(values) {
            let value = (!value.is_empty()).then_some(value);
            dimensions.insert(dimension.as_str().to_owned(), json!(value));
        }
        Self {
            dimensions,
            figures: FiguresOut::of(measured),
        }
    }
}

/// A row with all possible dimensions.
#[derive(ToSchema)]
#[schema(title = "Stats")]
#[expect(dead_code, reason = "describes what StatsOut writes")]
pub(super) struct StatsRowOut {
    /// The day. A row has at most one of `day`, `hour` (its start), `week` (its Monday) and
    /// `month`.
    day: Option<String>,
    hour: Option<String>,
    week: Option<String>,
    month: Option<String>,
    network: Option<String>,
    link: Option<String>,
    campaign: Option<String>,
    adset: Option<String>,
    ad: Option<String>,
    country: Option<String>,
    platform: Option<String>,
    event: Option<String>,
    source: Option<String>,
    #[schema(inline)]
    #[serde(flatten)]
    figures: FiguresOut,
}

pub(super) type StatsEnvelope = List<StatsRowOut, StatsMeta>;

/// Metadata about a page of figures.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the envelope that List writes")]
pub(crate) struct StatsMeta {
    has_more: bool,
    cursor: Option<String>,
    /// Totals over all pages.
    totals: FiguresOut,
    /// Present only if the figures lack events from before this time. After an upgrade, network and
    /// campaign together with country or platform are counted for earlier events in the background.
    complete_from: Option<String>,
}

/// Returns example figures for the OpenAPI description.
pub(super) fn example() -> Value {
    let mut row = json!({"day": "2026-01-01", "network": "network_a"});
    let figures = figures::example();
    if let (Some(row), Some(figures)) = (row.as_object_mut(), figures.as_object()) {
        row.extend(figures.clone());
    }
    json!({"data": [row], "meta": {"hasMore": false, "cursor": null, "totals": figures}})
}
