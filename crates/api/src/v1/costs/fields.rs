//! Request body for costs: JSON or CSV.

use crate::body::{content_type, is_json, malformed, read_bytes};
use crate::error::{ApiError, Code};
use crate::fields::{Fields, amount, described_body, objects, text_as};
use crate::json;
use crate::query::{QueryParameters, QueryString};
use crate::state::ApiState;
use axum::extract::{FromRequest, FromRequestParts as _, Request};
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::report::cost::{
    COSTS_MAX, Cost, CostOrigin, parse_paid_amount, parse_paid_network,
};
use tributary_domain::report::cost_table::{
    CAMPAIGN_CHARS_MAX, CostTableChoice, TableCosts, parse_campaign,
};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::field_input::FieldInput;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::text::check_length;
use tributary_fields::cost_csv::{CostCsv, decode_csv};

/// Content type for CSV.
const CSV: &str = "text/csv";
/// Longest header of a CSV column in characters.
const HEADER_CHARS_MAX: usize = 200;

described_body! {
    /// Ad costs.
    pub(super) CostsFields("CostsToStore") = read
}

/// A request body with costs.
#[derive(Debug)]
pub(crate) struct CostsBody(pub(super) TableCosts);

impl FromRequest<ApiState> for CostsBody {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        let kind = content_type(&parts.headers).unwrap_or_default().to_owned();
        let is_csv = kind.eq_ignore_ascii_case(CSV);
        if !is_csv && !is_json(&kind) {
            let message = "Send JSON (`Content-Type: application/json`) or CSV (`text/csv`).";
            return Err(ApiError::new(Code::UnsupportedMediaType, message));
        }
        let query = QueryString::from_request_parts(&mut parts, state).await?;
        let choice = query.read(read_choice)?;
        let bytes = read_bytes(&parts.headers, body, state).await?;
        let mut faults = Faults::new();
        let costs = if is_csv {
            let text = decode_csv(&bytes).ok_or_else(malformed)?;
            CostCsv::open(&text, &choice)?.read(&mut faults)
        } else {
            let text = std::str::from_utf8(&bytes).map_err(|_| malformed())?;
            let node = json::parse(text).map_err(|_| malformed())?;
            let mut fields = Fields::of_body(&node, &mut faults);
            let costs = read(&mut fields);
            fields.finish();
            reject_choice(&choice, &mut faults);
            TableCosts { costs, skipped: 0 }
        };
        check_count(costs.costs.len(), &mut faults);
        faults.into_result()?;
        Ok(Self(costs))
    }
}

/// Reads what the sender says about a CSV file.
fn read_choice(parameters: &mut QueryParameters<'_>) -> CostTableChoice {
    let column = |text: &str| check_length(text, 1, HEADER_CHARS_MAX).map(|()| text.to_owned());
    let any_column = |text: &str| check_length(text, 0, HEADER_CHARS_MAX).map(|()| text.to_owned());
    CostTableChoice {
        network: parameters.optional("network", parse_paid_network),
        currency: parameters.optional("currency", Currency::parse),
        day_column: parameters.optional("dayColumn", column),
        campaign_column: parameters.optional("campaignColumn", any_column),
        amount_column: parameters.optional("amountColumn", column),
        currency_column: parameters.optional("currencyColumn", column),
    }
}

/// Rejects parameters about a CSV file beside a JSON body, where they would have no effect.
fn reject_choice(choice: &CostTableChoice, faults: &mut Faults) {
    let given = [
        ("network", choice.network.is_some()),
        ("currency", choice.currency.is_some()),
        ("dayColumn", choice.day_column.is_some()),
        ("campaignColumn", choice.campaign_column.is_some()),
        ("amountColumn", choice.amount_column.is_some()),
        ("currencyColumn", choice.currency_column.is_some()),
    ];
    for (name, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
        let problem = Problem::new(FaultCode::NotAllowed, "Only valid with CSV.");
        faults.add(name, problem);
    }
}

fn check_count(count: usize, faults: &mut Faults) {
    if count > COSTS_MAX {
        let message = format!("Must contain at most {COSTS_MAX} costs.");
        faults.add("costs", Problem::new(FaultCode::TooLong, message));
    }
}

fn read(fields: &mut Fields<'_>) -> Vec<Cost> {
    let list = objects()
        .required()
        .size(1..=COSTS_MAX)
        .about("Ad cost of a campaign on one day. At most 5000 items.");
    let costs = fields.items("costs", list.expecting_each("an object"), read_cost);
    let is_empty = matches!(&costs, FieldInput::Value(costs) if costs.is_empty());
    if is_empty || !costs.is_present() {
        let problem = Problem::new(FaultCode::Required, "Must contain at least one cost.");
        fields.check(|faults| faults.add("costs", problem));
    }
    let costs = costs.value().unwrap_or_default().into_iter();
    costs.filter_map(|cost| cost.value()?).collect()
}

fn read_cost(fields: &mut Fields<'_>) -> Option<Cost> {
    let day = fields.required("day", text_as(Day::parse).format("date"));
    let network =
        text_as(parse_paid_network).about("`network_a` to `network_d`, `apple_ads` or `other`.");
    let network = fields.required("network", network);
    let campaign = text_as(parse_campaign).size(0..=CAMPAIGN_CHARS_MAX);
    let campaign = fields.input(
        "campaign",
        campaign.about("Campaign id. Omit it for a cost without a campaign."),
    );
    let amount = amount().then(|amount| parse_paid_amount(&amount.to_string()));
    let amount = fields.required(
        "amount",
        amount.about("A number or a decimal string, not negative. 0 removes the cost."),
    );
    let currency = text_as(Currency::parse).about("Current ISO 4217 code. Default: USD.");
    let currency = fields.input("currency", currency);
    cost(day, network, campaign.value(), amount, currency.value())
}

/// Builds a cost if all required parts are valid.
fn cost(
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
        currency: currency.unwrap_or(Currency::USD),
        origin: CostOrigin::Manual,
    })
}
