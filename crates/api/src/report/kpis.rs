//! Key figures, compared with the previous period.

use crate::decimal::number;
use serde::Serialize;
use serde_json::value::RawValue;
use tributary_domain::report::{ReportFigures, share};
use tributary_domain::vocabulary::money::{Amount, MICROS_PER_UNIT};
use utoipa::ToSchema;

/// A figure, its value in the previous period, and the relative change.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(title = "Kpi")]
pub(crate) struct KpiOut {
    #[schema(value_type = Option<f64>)]
    value: Option<Box<RawValue>>,
    #[schema(value_type = Option<f64>)]
    previous: Option<Box<RawValue>>,
    /// Relative change: 0.25 is 25 % more. Null if the previous value is 0 or missing.
    #[schema(value_type = Option<f64>)]
    change: Option<Box<RawValue>>,
}

impl KpiOut {
    fn of(value: Option<i64>, previous: Option<i64>) -> Self {
        let change = value.zip(previous).and_then(|(value, previous)| {
            let base = previous.checked_abs()?;
            share(value.saturating_sub(previous), base)
        });
        let written = |micros: Option<i64>| micros.map(Amount::from_micros).and_then(number);
        Self {
            value: written(value),
            previous: written(previous),
            change: change.and_then(number),
        }
    }
}

macro_rules! kpis {
    ($($name:ident: $read:expr,)*) => {
        /// Key figures. Money is in US dollars.
        #[derive(Debug, Clone, Serialize, ToSchema)]
        #[serde(rename_all = "camelCase")]
        #[schema(title = "Kpis")]
        pub(crate) struct KpisOut {
            $($name: KpiOut,)*
        }

        impl KpisOut {
            /// Builds the key figures for a period and the previous one.
            pub(crate) fn of(now: &ReportFigures, before: &ReportFigures) -> Self {
                Self {
                    $($name: {
                        let read: fn(&ReportFigures) -> Option<i64> = $read;
                        KpiOut::of(read(now), read(before))
                    },)*
                }
            }
        }
    };
}

/// Converts a count to micros, the unit in which all figures are written.
const fn count(number: i64) -> i64 {
    number.saturating_mul(MICROS_PER_UNIT)
}

kpis! {
    clicks: |all| Some(count(all.figures.clicks)),
    installs: |all| Some(count(all.figures.installs)),
    organic_installs: |all| Some(count(all.figures.organic_installs)),
    sign_ups: |all| Some(count(all.figures.sign_ups)),
    trials: |all| Some(count(all.figures.trials)),
    qualified_trials: |all| Some(count(all.figures.qualified_trials)),
    subscriptions: |all| Some(count(all.figures.subscriptions)),
    purchases: |all| Some(count(all.figures.purchases)),
    renewals: |all| Some(count(all.figures.renewals)),
    refunds: |all| Some(count(all.figures.refunds)),
    events: |all| Some(count(all.figures.events)),
    revenue: |all| Some(all.figures.revenue_micros),
    refunded: |all| Some(all.figures.refunded_micros),
    net_revenue: |all| Some(all.figures.net_micros()),
    paying_devices: |all| Some(count(all.figures.paying_devices)),
    held_installs: |all| Some(count(all.figures.held_installs)),
    held_revenue: |all| Some(all.figures.held_revenue_micros),
    cost: |all| all.cost,
    conversion_rate: |all| all.conversion_rate().map(Amount::micros),
    arpu: |all| all.arpu().map(Amount::micros),
    cpi: |all| all.cpi().map(Amount::micros),
    roas: |all| all.roas().map(Amount::micros),
    paid_cpi: |all| all.paid_cpi().map(Amount::micros),
    paid_roas: |all| all.paid_roas().map(Amount::micros),
}

/// Returns example key figures for the OpenAPI description.
pub(crate) fn example() -> serde_json::Value {
    let figures = super::figures::example();
    let figures = figures.as_object().cloned().unwrap_or_default();
    let kpi = |(name, value)| {
        let kpi = serde_json::json!({"value": value, "previous": value, "change": 0});
        (name, kpi)
    };
    serde_json::Value::Object(figures.into_iter().map(kpi).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: Option<i64>, previous: Option<i64>) -> String {
        serde_json::to_string(&KpiOut::of(value, previous)).unwrap()
    }

    #[test]
    fn a_change_is_relative_to_the_previous_value() {
        let text = written(Some(count(5)), Some(count(4)));
        assert_eq!(text, r#"{"value":5,"previous":4,"change":0.25}"#);
        let text = written(Some(-1_500_000), Some(-3_000_000));
        assert_eq!(text, r#"{"value":-1.5,"previous":-3,"change":0.5}"#);
        let text = written(Some(count(5)), Some(count(0)));
        assert_eq!(text, r#"{"value":5,"previous":0,"change":null}"#);
        assert_eq!(
            written(None, None),
            r#"{"value":null,"previous":null,"change":null}"#
        );
    }
}
