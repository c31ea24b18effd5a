//! JSON form of a cost.

use crate::decimal::number;
use crate::page::List;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tributary_domain::report::cost::StoredCost;
use utoipa::ToSchema;

/// Ad cost of a campaign on one day.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Cost")]
pub(super) struct CostOut {
    #[schema(format = Date)]
    day: String,
    network: &'static str,
    /// Campaign id; null if the cost has no campaign.
    campaign: Option<String>,
    /// Amount as it was sent.
    #[schema(value_type = f64)]
    amount: Option<Box<RawValue>>,
    currency: String,
    /// Amount in US dollars at the rate for the cost's day.
    #[schema(value_type = f64)]
    usd: Option<Box<RawValue>>,
    /// Day of the exchange rate.
    #[schema(format = Date)]
    rate_date: String,
    /// `manual`, or `imported` from the network's cost report.
    source: &'static str,
    /// Whether reports include the cost. On a day with imported costs of a network, manual costs of
    /// the network do not count.
    counted: bool,
}

impl From<StoredCost> for CostOut {
    fn from(stored: StoredCost) -> Self {
        let StoredCost {
            cost,
            usd,
            rate_day,
            is_counted,
        } = stored;
        Self {
            day: cost.day.to_string(),
            network: cost.network.as_str(),
            campaign: Some(cost.campaign).filter(|campaign| !campaign.is_empty()),
            amount: number(cost.amount),
            currency: cost.currency.as_str().to_owned(),
            usd: number(usd),
            rate_date: rate_day.to_string(),
            source: cost.origin.as_str(),
            counted: is_counted,
        }
    }
}

pub(super) type CostListEnvelope = List<CostOut>;

/// Returns an example cost for the OpenAPI description.
pub(super) fn example() -> Value {
    json!({
        "day": "2026-01-01", "network": "network_a", "campaign": "120210", "amount": 80, "currency": "EUR",
        "usd": 86.4, "rateDate": "2025-12-31", "source": "manual", "counted": true
    })
}
