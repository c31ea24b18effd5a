//! JSON form of report figures.

use crate::decimal::number;
use serde::Serialize;
use serde_json::value::RawValue;
use tributary_domain::report::ReportFigures;
use tributary_domain::vocabulary::money::Amount;
use utoipa::ToSchema;

/// Figures in a report. Money is in US dollars.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Figures")]
pub(crate) struct FiguresOut {
    /// Taps on links, without bots.
    clicks: i64,
    /// First opens of the app.
    installs: i64,
    /// Installs that are not attributed to an ad.
    organic_installs: i64,
    sign_ups: i64,
    trials: i64,
    qualified_trials: i64,
    subscriptions: i64,
    purchases: i64,
    renewals: i64,
    refunds: i64,
    /// All events, including installs.
    events: i64,
    /// Counted revenue before refunds.
    #[schema(value_type = f64)]
    revenue: Option<Box<RawValue>>,
    /// Refunded amount.
    #[schema(value_type = f64)]
    refunded: Option<Box<RawValue>>,
    /// Revenue minus refunds.
    #[schema(value_type = f64)]
    net_revenue: Option<Box<RawValue>>,
    /// Devices whose first counted payment is in this row.
    paying_devices: i64,
    /// Flagged installs that are held for a review. Not in `installs`.
    held_installs: i64,
    /// Counted revenue of held installs before refunds. Not in `revenue`.
    #[schema(value_type = f64)]
    held_revenue: Option<Box<RawValue>>,
    /// Ad cost; null if cost is not available for the requested grouping or filters.
    #[schema(value_type = Option<f64>)]
    cost: Option<Box<RawValue>>,
    /// Installs per click; null if there are no clicks.
    #[schema(value_type = Option<f64>)]
    conversion_rate: Option<Box<RawValue>>,
    /// Net revenue per install; null if there are no installs.
    #[schema(value_type = Option<f64>)]
    arpu: Option<Box<RawValue>>,
    /// Blended cost per install: `cost` divided by all `installs`, organic ones included. Null if
    /// there are no installs or no cost.
    #[schema(value_type = Option<f64>)]
    cpi: Option<Box<RawValue>>,
    /// Blended net revenue per dollar of cost, organic revenue included. Null without costs.
    #[schema(value_type = Option<f64>)]
    roas: Option<Box<RawValue>>,
    /// Cost per paid install: `cost` divided by `installs` minus `organicInstalls`. Null if there
    /// are no paid installs or no cost.
    #[schema(value_type = Option<f64>)]
    paid_cpi: Option<Box<RawValue>>,
    /// Paid net revenue per dollar of cost: `netRevenue` without that of the network `organic` and
    /// of events without a network, divided by `cost`. Null if there is no cost.
    #[schema(value_type = Option<f64>)]
    paid_roas: Option<Box<RawValue>>,
}

impl FiguresOut {
    pub(crate) fn of(measured: &ReportFigures) -> Self {
        let ReportFigures { figures, cost, .. } = measured;
        let money = |micros| number(Amount::from_micros(micros));
        Self {
            clicks: figures.clicks,
            installs: figures.installs,
            organic_installs: figures.organic_installs,
            sign_ups: figures.sign_ups,
            trials: figures.trials,
            qualified_trials: figures.qualified_trials,
            subscriptions: figures.subscriptions,
            purchases: figures.purchases,
            renewals: figures.renewals,
            refunds: figures.refunds,
            events: figures.events,
            revenue: money(figures.revenue_micros),
            refunded: money(figures.refunded_micros),
            net_revenue: money(figures.net_micros()),
            paying_devices: figures.paying_devices,
            held_installs: figures.held_installs,
            held_revenue: money(figures.held_revenue_micros),
            cost: cost.and_then(money),
            conversion_rate: measured.conversion_rate().and_then(number),
            arpu: measured.arpu().and_then(number),
            cpi: measured.cpi().and_then(number),
            roas: measured.roas().and_then(number),
            paid_cpi: measured.paid_cpi().and_then(number),
            paid_roas: measured.paid_roas().and_then(number),
        }
    }
}

/// Returns example figures for the OpenAPI description.
pub(crate) fn example() -> serde_json::Value {
    serde_json::json!({
        "clicks": 1200, "installs": 300, "organicInstalls": 40, "signUps": 150, "trials": 60, "qualifiedTrials": 0,
        "subscriptions": 20, "purchases": 35, "renewals": 12, "refunds": 1, "events": 4210, "revenue": 612.5,
        "refunded": 9.99, "netRevenue": 602.51, "payingDevices": 31, "heldInstalls": 4, "heldRevenue": 9.99, "cost": 240,
        "conversionRate": 0.25, "arpu": 2.008_367, "cpi": 0.8, "roas": 2.510_458, "paidCpi": 0.923_077, "paidRoas": 2.1
    })
}
