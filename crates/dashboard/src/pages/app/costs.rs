//! `/apps/{app}/costs` — ad costs by day, network and campaign, entered as CSV.

use crate::access::{FormSubmission, PageContext, ReportContext};
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::network_label::NetworkLabel;
use crate::response::see_other;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::{paging, text};
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::link::campaign_id;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::cost::{
    COSTS_MAX, Cost, CostFilter, StoredCost, parse_paid_amount, parse_paid_network,
};
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::digest::{from_hex, hex};
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_store::StoreError;

#[derive(Template)]
#[template(path = "costs.html")]
struct CostsPage {
    shell: Shell,
    rows: Vec<Row>,
    older: Option<String>,
    form: FormState,
}

struct Row {
    day: String,
    network: NetworkLabel,
    campaign: String,
    amount: String,
    usd: String,
}

fn row(stored: &StoredCost) -> Row {
    let cost = &stored.cost;
    Row {
        day: cost.day.to_string(),
        network: NetworkLabel::credited(cost.network),
        campaign: cost.campaign.clone(),
        amount: format!("{} {}", cost.amount, cost.currency.as_str()),
        usd: text::usd(stored.usd),
    }
}

async fn page(
    handles: &DashboardHandles,
    context: &PageContext<impl Send>,
    caller: &Authorized<AppsRead>,
    form: FormState,
) -> Result<CostsPage, Failure> {
    let app = context.app()?.id;
    let before = context.query.get("before").and_then(from_hex);
    let before = before.and_then(|bytes| bytes.try_into().ok());
    let request = paging::request(before);
    let found = handles
        .store
        .costs(caller, app, CostFilter::default(), request)
        .await?;
    let last = found.items.last().map(|one| hex(one.cost.key().as_bytes()));
    Ok(CostsPage {
        shell: context.shell(Section::Costs),
        rows: found.items.iter().map(row).collect(),
        older: paging::older(&context.query, found.has_more, last),
        form,
    })
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: ReportContext<AppsRead>,
) -> Result<Response, Failure> {
    let page = page(
        &handles,
        &context,
        &context.authorized,
        FormState::default(),
    )
    .await?;
    Ok(context.page(&page))
}

/// Parses lines of `day, network, campaign, amount, currency`. A header line is skipped.
fn parse_lines(text: &str) -> (Vec<Cost>, Faults) {
    let (mut costs, mut faults) = (Vec::new(), Faults::new());
    let lines: Vec<(usize, &str)> = text
        .lines()
        .map(str::trim)
        .enumerate()
        .filter(|(number, line)| !(line.is_empty() || *number == 0 && line.starts_with("day")))
        .collect();
    if lines.is_empty() || lines.len() > COSTS_MAX {
        let message = format!("Must have 1 to {COSTS_MAX} lines.");
        faults.add("costs", Problem::new(FaultCode::OutOfRange, message));
        return (costs, faults);
    }
    for (number, line) in lines {
        let path = format!("costs line {}", number + 1);
        let fields: Vec<&str> = line.split([',', ';', '\t']).map(str::trim).collect();
        let [day, network, campaign, amount, currency] = fields[..] else {
            let message = "Must have five values: day, network, campaign, amount, currency.";
            faults.add(path, Problem::new(FaultCode::InvalidFormat, message));
            continue;
        };
        let day = faults.check(&path, Day::parse(day));
        let network = faults.check(&path, parse_paid_network(network));
        let campaign = match campaign {
            "" => Some(String::new()),
            text => faults.check(&path, campaign_id(text)),
        };
        let amount = faults.check(&path, parse_paid_amount(amount));
        let currency = faults.check(&path, Currency::parse(currency));
        if let (Some(day), Some(network), Some(campaign), Some(amount), Some(currency)) =
            (day, network, campaign, amount, currency)
        {
            costs.push(Cost {
                day,
                network,
                campaign,
                amount,
                currency,
            });
        }
    }
    (costs, faults)
}

/// Stores the submitted lines.
pub(crate) async fn put(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let app = submission.app()?.id;
    let (costs, mut faults) = parse_lines(&submission.form.field("costs"));
    if faults.is_empty() {
        let origin = submission.origin(&handles);
        let put = handles
            .store
            .put_costs(&submission.authorized, app, costs, origin);
        match put.await {
            Ok(_) => return Ok(see_other(&format!("/apps/{app}/costs?notice=saved"))),
            Err(StoreError::Refused(Refusal::Invalid(found))) => faults = found,
            Err(error) => return Err(error.into()),
        }
    }
    let form = FormState::from_form(&submission.form).with_faults(faults);
    let caller = submission.authorized.read_access();
    let page = page(&handles, &submission.context, &caller, form).await?;
    Ok(submission.page_with(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::one("2026-11-01, network_a, 238, 12.50, USD", Ok(1))]
    #[case::with_a_header(
        "day,network,campaign,amount,currency\n2026-11-01,apple_ads,,3,EUR\n",
        Ok(1)
    )]
    #[case::tabs(
        "2026-11-01\tnetwork_b\tx\t3\tEUR\n2026-11-02\tnetwork_b\tx\t3\tEUR",
        Ok(2)
    )]
    #[case::nothing("", Err(1))]
    #[case::organic("2026-11-01,organic,,3,EUR", Err(1))]
    #[case::everything_wrong("yesterday,nobody,,-3,XXX", Err(4))]
    #[case::too_few("2026-11-01,network_a", Err(1))]
    fn parses_lines(#[case] text: &str, #[case] expected: Result<usize, usize>) {
        let (costs, faults) = parse_lines(text);
        let found = if faults.is_empty() {
            Ok(costs.len())
        } else {
            Err(faults.iter().count())
        };
        assert_eq!(found, expected);
    }
}
