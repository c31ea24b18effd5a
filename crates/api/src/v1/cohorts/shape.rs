//! JSON form of cohorts.

use crate::decimal::number;
use crate::page::List;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tributary_domain::report::cohort::CohortFigures;
use tributary_domain::report::range::Span;
use tributary_domain::report::{ratio, share};
use tributary_domain::vocabulary::money::{Amount, MICROS_PER_UNIT};
use tributary_domain::vocabulary::time::Timestamp;
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
    /// Devices active on this day, per install.
    #[schema(value_type = Option<f64>)]
    retention: Option<Box<RawValue>>,
    /// Net revenue on this day.
    #[schema(value_type = f64)]
    revenue: Option<Box<RawValue>>,
    /// Net revenue up to and including this day.
    #[schema(value_type = f64)]
    cumulative_revenue: Option<Box<RawValue>>,
    /// Cumulative revenue per install.
    #[schema(value_type = Option<f64>)]
    revenue_per_install: Option<Box<RawValue>>,
    /// Cumulative revenue per dollar of cost; null if there is no cost.
    #[schema(value_type = Option<f64>)]
    roas: Option<Box<RawValue>>,
}

impl CohortOut {
    pub(super) fn of(
        span: &Span,
        by: Option<(&str, &str)>,
        ages: &BTreeMap<u8, CohortFigures>,
        cost: Option<i64>,
        age_max: u8,
        now: Timestamp,
    ) -> Self {
        // The install itself is an event on day 0.
        let installs = ages.get(&0).map_or(0, |first| first.devices);
        let days = |age: u8| Duration::from_hours(24 * u64::from(age));
        let (begin, end) = span.period;
        let mut cumulative = 0_i64;
        let shown = (0..=age_max).take_while(|age| begin.plus(days(*age)) <= now);
        let ages = shown.map(|age| {
            let figures = ages.get(&age).copied().unwrap_or_default();
            let net = figures
                .revenue_micros
                .saturating_sub(figures.refunded_micros);
            cumulative = cumulative.saturating_add(net);
            let money = |micros| number(Amount::from_micros(micros));
            AgeOut {
                day: age,
                complete: end.plus(days(age.saturating_add(1))) <= now,
                devices: figures.devices,
                retention: ratio(figures.devices.saturating_mul(MICROS_PER_UNIT), installs)
                    .and_then(number),
                revenue: money(net),
                cumulative_revenue: money(cumulative),
                revenue_per_install: ratio(cumulative, installs).and_then(number),
                roas: cost
                    .and_then(|cost| share(cumulative, cost))
                    .and_then(number),
            }
        });
        let value = |text: &str| json!((!text.is_empty()).then_some(text));
        Self {
            cohort: span.label.clone(),
            by: by
                .map(|(name, text)| (name.to_owned(), value(text)))
                .into_iter()
                .collect(),
            installs,
            ages: ages.collect(),
            cost: cost.map(Amount::from_micros).and_then(number),
        }
    }
}

pub(super) type CohortsEnvelope = List<CohortOut>;

/// Returns example cohorts for the OpenAPI description.
pub(super) fn example() -> Value {
    let age = |day: u8, devices: u32, retention: f32, revenue: f32| {
        json!({
            "day": day, "complete": true, "devices": devices, "retention": retention, "revenue": revenue,
            "cumulativeRevenue": 120, "revenuePerInstall": 0.4, "roas": 0.5
        })
    };
    json!({
        "data": [{
            "cohort": "2026-01-01", "network": "network_a", "installs": 300, "cost": 240,
            "ages": [age(0, 300, 1.0, 120.0), age(1, 90, 0.3, 0.0)]
        }],
        "meta": {"hasMore": false, "cursor": null}
    })
}
