//! JSON form of cohorts.

use crate::decimal::number;
use crate::page::{List, PageMeta};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tributary_domain::report::Dimension;
use tributary_domain::report::cohort::{
    Cohort, CohortAge, CohortMeasure, CohortSums, same_cohorts, weighted_average,
};
use tributary_domain::report::range::Span;
use tributary_domain::vocabulary::money::Amount;
use utoipa::ToSchema;

/// Devices that installed in the same period.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Cohort")]
pub(super) struct CohortOut {
    /// Period of the installs: the day, the Monday of the week, or the month.
    #[schema(example = "2026-01-01")]
    cohort: String,
    /// `network`, `link`, `campaign` or `country` if requested with `groupBy`; null if unknown.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    by: Map<String, Value>,
    installs: i64,
    /// Ad cost; null if cost is not available for the requested grouping.
    #[schema(value_type = Option<f64>)]
    cost: Option<Box<RawValue>>,
    /// Figures by day since install, up to the latest day that devices installed at the start of
    /// the period have reached.
    ages: Vec<AgeOut>,
}

/// A cohort's figures for one day since install.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgeOut {
    /// Day since install: 0 is the first 24 hours after a device's install, 1 the next 24 hours.
    day: u8,
    /// True once all devices in the cohort have completed this day.
    complete: bool,
    /// Number of devices with at least one event on this day.
    devices: i64,
    /// Net revenue on this day.
    #[schema(value_type = f64)]
    revenue: Option<Box<RawValue>>,
    #[serde(flatten)]
    #[schema(inline)]
    measures: MeasuresOut,
}

/// Measures at an age.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct MeasuresOut {
    /// Devices active on this day, per install.
    #[schema(value_type = Option<f64>)]
    retention: Option<Box<RawValue>>,
    /// Number of devices with a counted payment up to and including this day. Null while payers of
    /// installs from before an upgrade are being counted.
    payers: Option<i64>,
    /// Share of payers: `payers` per install.
    #[schema(value_type = Option<f64>)]
    payer_share: Option<Box<RawValue>>,
    /// Net revenue up to and including this day.
    #[schema(value_type = f64)]
    cumulative_revenue: Option<Box<RawValue>>,
    /// Cumulative revenue per install.
    #[schema(value_type = Option<f64>)]
    revenue_per_install: Option<Box<RawValue>>,
    /// Blended ROAS: cumulative revenue per dollar of cost, including organic revenue; null
    /// without costs.
    #[schema(value_type = Option<f64>)]
    roas: Option<Box<RawValue>>,
    /// Paid ROAS: cumulative revenue per dollar of cost without the network `organic`; null
    /// without costs.
    #[schema(value_type = Option<f64>)]
    paid_roas: Option<Box<RawValue>>,
}

impl CohortOut {
    pub(super) fn of(cohort: &Cohort, spans: &[Span], by: Option<Dimension>) -> Self {
        let label = spans.get(cohort.period).map(|span| span.label.clone());
        let value = |text: &String| json!((!text.is_empty()).then_some(text));
        let by = by.into_iter().zip(&cohort.values);
        Self {
            cohort: label.unwrap_or_default(),
            by: by
                .map(|(dimension, text)| (dimension.as_str().to_owned(), value(text)))
                .collect(),
            installs: cohort.installs,
            cost: cohort.cost.map(Amount::from_micros).and_then(number),
            ages: cohort.ages.iter().map(AgeOut::of).collect(),
        }
    }

    /// Returns the period and the value, which identify the cohort.
    pub(super) fn labels(&self) -> impl Iterator<Item = &str> {
        let values = self.by.values().map(|value| value.as_str().unwrap_or(""));
        std::iter::once(self.cohort.as_str()).chain(values)
    }
}

impl AgeOut {
    fn of(at: &CohortAge) -> Self {
        Self {
            day: at.age,
            complete: at.is_complete,
            devices: at.sums.devices,
            revenue: number(Amount::from_micros(at.net_micros)),
            measures: MeasuresOut::of(&at.sums),
        }
    }
}

impl MeasuresOut {
    fn of(sums: &CohortSums) -> Self {
        let measure = |measure: CohortMeasure| measure.of(sums).and_then(number);
        Self {
            retention: measure(CohortMeasure::Retention),
            payers: sums.payers,
            payer_share: measure(CohortMeasure::PayerShare),
            cumulative_revenue: measure(CohortMeasure::CumulativeRevenue),
            revenue_per_install: measure(CohortMeasure::RevenuePerInstall),
            roas: measure(CohortMeasure::Roas),
            paid_roas: measure(CohortMeasure::PaidRoas),
        }
    }
}

/// Metadata about a page of cohorts.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CohortsMeta {
    #[serde(flatten)]
    #[schema(inline)]
    page: PageMeta,
    /// Averages over the cohorts of all pages, by day since install. A day counts the cohorts in
    /// which all devices have completed it; days without such a cohort are left out.
    averages: Vec<AverageOut>,
    /// Figures of the same cohorts on every day since install, from day 0 to the last day that at
    /// least a quarter of the installs has completed: the cohorts that have completed this last
    /// day. Averages of different days count different cohorts; these can be compared.
    same_cohorts: Vec<AverageOut>,
}

/// Average of cohorts on one day since install: the sum of their devices, payers or revenue, divided
/// by the sum of their installs or costs.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "CohortAverage")]
pub(super) struct AverageOut {
    /// Day since install.
    day: u8,
    /// Number of cohorts in which all devices have completed this day.
    cohorts: u32,
    /// Installs of these cohorts.
    installs: i64,
    /// Ad cost of these cohorts; null if it is not available.
    #[schema(value_type = Option<f64>)]
    cost: Option<Box<RawValue>>,
    #[serde(flatten)]
    #[schema(inline)]
    measures: MeasuresOut,
}

impl CohortsMeta {
    /// Returns the metadata of a page of these cohorts.
    pub(super) fn new(page: PageMeta, cohorts: &[Cohort], age_max: u8) -> Self {
        let average = |day: u8| {
            let sums = weighted_average(cohorts, day)?;
            Some(AverageOut::of(day, &sums))
        };
        let followed = same_cohorts(cohorts, age_max);
        let followed = (0..=age_max).zip(&followed);
        Self {
            page,
            averages: (0..=age_max).filter_map(average).collect(),
            same_cohorts: followed
                .map(|(day, sums)| AverageOut::of(day, sums))
                .collect(),
        }
    }
}

impl AverageOut {
    fn of(day: u8, sums: &CohortSums) -> Self {
        Self {
            day,
            cohorts: sums.cohorts,
            installs: sums.installs,
            cost: sums.cost_micros.map(Amount::from_micros).and_then(number),
            measures: MeasuresOut::of(sums),
        }
    }
}

pub(super) type CohortsEnvelope = List<CohortOut, CohortsMeta>;

/// Returns example cohorts for the OpenAPI description.
pub(super) fn example() -> Value {
    let age = |day: u8, devices: u32, retention: f32, revenue: f32| {
        json!({
            "day": day, "complete": true, "devices": devices, "retention": retention, "revenue": revenue,
            "payers": 12, "payerShare": 0.04,
            "cumulativeRevenue": 120, "revenuePerInstall": 0.4, "roas": 0.5, "paidRoas": 0.5
        })
    };
    let average = |day: u8, retention: f32| {
        json!({
            "day": day, "cohorts": 1, "installs": 300, "cost": 240, "retention": retention,
            "payers": 12, "payerShare": 0.04,
            "cumulativeRevenue": 120, "revenuePerInstall": 0.4, "roas": 0.5, "paidRoas": 0.5
        })
    };
    json!({
        "data": [{
            "cohort": "2026-01-01", "network": "network_a", "installs": 300, "cost": 240,
            "ages": [age(0, 300, 1.0, 120.0), age(1, 90, 0.3, 0.0)]
        }],
        "meta": {"hasMore": false, "cursor": null, "averages": [average(0, 1.0), average(1, 0.3)],
            "sameCohorts": [average(0, 1.0), average(1, 0.3)]}
    })
}
