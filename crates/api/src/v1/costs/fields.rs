//! Costs as they are sent: as JSON, or as a table.

use super::csv;
use crate::body::{content_type, is_json, malformed, read_bytes};
use crate::error::{ApiError, Code};
use crate::fields::{Fields, amount, text_as};
use crate::json::{self, Node};
use crate::state::ApiState;
use axum::extract::{FromRequest, Request};
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::report::cost::{COSTS_MAX, Cost, paid_amount, paid_network};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::given::Given;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::text::within;
use utoipa::ToSchema;

/// Characters of a campaign's id, as clicks keep them.
const CAMPAIGN_CHARS_MAX: usize = 500;

/// Costs of ads.
#[derive(ToSchema)]
#[schema(title = "CostsToStore")]
#[expect(dead_code, reason = "describes what read takes")]
pub(super) struct CostsFields {
    /// At most 5000.
    #[schema(min_items = 1, max_items = 5_000)]
    costs: Vec<CostFields>,
}

/// What the ads of a campaign cost on a day.
#[derive(ToSchema)]
#[schema(title = "CostToStore")]
#[expect(dead_code, reason = "describes what read takes")]
struct CostFields {
    #[schema(format = Date)]
    day: String,
    /// `network_a` to `network_d`, `apple_ads` or `other`.
    network: String,
    /// The campaign's id; of no campaign when absent.
    #[schema(max_length = 500)]
    campaign: Option<String>,
    /// Not negative; 0 removes what was told before.
    #[schema(value_type = crate::choices::AmountChoice)]
    amount: String,
    /// A current ISO 4217 code; USD when absent.
    currency: Option<String>,
}

/// A body of costs.
#[derive(Debug)]
pub(crate) struct CostsBody(pub(super) Vec<Cost>);

impl FromRequest<ApiState> for CostsBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let kind = content_type(&parts.headers).unwrap_or_default();
        if kind != csv::CONTENT_TYPE && !is_json(&kind) {
            let message = "Send JSON, with the header Content-Type: application/json, or a table, with text/csv.";
            return Err(ApiError::new(Code::UnsupportedMediaType, message));
        }
        let bytes = read_bytes(&parts.headers, body, state).await?;
        let text = std::str::from_utf8(&bytes).map_err(|_| malformed())?;
        let mut faults = Faults::new();
        let costs = if is_json(&kind) {
            let node = json::parse(text).map_err(|_| malformed())?;
            read(&node, &mut faults)
        } else {
            csv::read(text, &mut faults)
        };
        check_count(costs.len(), &mut faults);
        faults.into_result()?;
        Ok(Self(costs))
    }
}

fn check_count(count: usize, faults: &mut Faults) {
    if count > COSTS_MAX {
        let message = format!("Send at most {COSTS_MAX} at a time.");
        faults.add("costs", Problem::new(FaultCode::TooLong, message));
    }
}

fn read(node: &Node, faults: &mut Faults) -> Vec<Cost> {
    let mut fields = Fields::of_body(node, faults);
    let items = fields.items("costs", read_cost);
    if matches!(&items, Given::Absent) || matches!(&items, Given::Value(items) if items.is_empty())
    {
        let problem = Problem::new(FaultCode::Required, "Must hold at least one cost.");
        fields.check(|faults| faults.add("costs", problem));
    }
    fields.finish();
    match items {
        Given::Value(items) => items.into_iter().flatten().collect(),
        Given::Absent | Given::Faulty => Vec::new(),
    }
}

fn read_cost(node: &Node, path: String, faults: &mut Faults) -> Option<Cost> {
    let mut fields = Fields::of_item(node, path, faults);
    let day = fields.required("day", text_as(Day::parse));
    let network = fields.required("network", text_as(paid_network));
    let campaign = fields.given("campaign", text_as(campaign));
    let amount = fields.required("amount", |node| {
        let amount = amount(node)?;
        paid_amount(&amount.to_string())
    });
    let currency = fields.given("currency", text_as(Currency::parse));
    fields.finish();
    cost(day, network, given(campaign), amount, given(currency))
}

fn given<T>(value: Given<T>) -> Option<T> {
    match value {
        Given::Value(value) => Some(value),
        Given::Absent | Given::Faulty => None,
    }
}

/// Reads the id of a campaign.
pub(super) fn campaign(text: &str) -> Result<String, Problem> {
    within(text, 0, CAMPAIGN_CHARS_MAX).map(|()| text.to_owned())
}

/// A cost whose parts were read.
pub(super) fn cost(
    day: Option<Day>,
    network: Option<CreditedNetwork>,
    campaign: Option<String>,
    amount: Option<Amount>,
    currency: Option<Currency>,
) -> Option<Cost> {
    Some(Cost {
        day: day?,
        network: network?,
        campaign: campaign.unwrap_or_default(),
        amount: amount?,
        currency: currency.or_else(|| Currency::stored("USD"))?,
    })
}
