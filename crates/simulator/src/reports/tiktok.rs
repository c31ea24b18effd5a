//! `GET /open_api/v1.3/report/integrated/get/`: TikTok's integrated report by campaign and day.

use super::{ReportAccount, SpendRow, days, is_digits};
use crate::network::{Endpoint, SimulatedNetwork};
use crate::registry::is_valid_credential;
use crate::reply::{SimulatedOutcome, SimulatedReply};
use crate::request_pipeline::{self, EndpointHandler, ReceivedRequest, RequestRoute};
use crate::state::SimulatorState;
use axum::extract::{Request, State as Shared};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};
use std::sync::Arc;
use url::form_urlencoded;

/// Longest range by day.
const DAYS_MAX: i32 = 30;
const PAGE_SIZE_MAX: usize = 1_000;
const PARAMETERS: [&str; 10] = [
    "advertiser_id",
    "service_type",
    "report_type",
    "data_level",
    "dimensions",
    "metrics",
    "start_date",
    "end_date",
    "page",
    "page_size",
];
/// Parameters that have one accepted value here.
const FIXED: [(&str, &str); 3] = [
    ("service_type", "AUCTION"),
    ("report_type", "BASIC"),
    ("data_level", "AUCTION_CAMPAIGN"),
];
const METRICS: [&str; 5] = [
    "spend",
    "currency",
    "campaign_name",
    "impressions",
    "clicks",
];

const HANDLER: EndpointHandler = EndpointHandler {
    account_of: |received| received.query("advertiser_id"),
    process,
    expired: |_| bad_token(),
};

pub(crate) async fn integrated(
    Shared(world): Shared<Arc<SimulatorState>>,
    request: Request,
) -> Response {
    let route = RequestRoute {
        network: SimulatedNetwork::NetworkC,
        endpoint: Endpoint::Reports,
        account: None,
    };
    request_pipeline::handle(&world, route, &HANDLER, request).await
}

fn reply(code: u32, message: &str, data: &Value) -> SimulatedReply {
    let body = json!({"code": code, "message": message, "request_id": "simulatedReport",
        "data": data});
    SimulatedReply::json(StatusCode::OK, &body)
}

fn refused(code: u32, message: &str) -> SimulatedOutcome {
    let reply = reply(code, message, &json!({}));
    SimulatedOutcome::refused(reply, code.to_string(), message)
}

fn bad_token() -> SimulatedOutcome {
    refused(40105, "Access token is incorrect or has been revoked.")
}

fn process(world: &SimulatorState, received: &mut ReceivedRequest) -> SimulatedOutcome {
    let id = received.route.account.clone().unwrap_or_default();
    let network = SimulatedNetwork::NetworkC;
    let registered = world.state().reports.get(network, &id);
    let expected = registered
        .as_ref()
        .and_then(|one| one.access_token.as_deref());
    let token = received.header("access-token").unwrap_or_default();
    if token.is_empty() {
        return refused(40104, "Access token is empty.");
    }
    if !is_valid_credential(token, expected) {
        return bad_token();
    }
    let account = match registered {
        Some(account) => account,
        None if world.options.open && is_digits(&id) => ReportAccount::empty(network, &id),
        None => return refused(40001, "No permission to operate the advertiser."),
    };
    match answer(&account, received) {
        Ok(data) => SimulatedOutcome::accepted(reply(0, "OK", &data)),
        Err((name, message)) => refused(40002, &format!("{name}: {message}")),
    }
}

fn names(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap_or_default()
}

fn answer(
    account: &ReportAccount,
    received: &ReceivedRequest,
) -> Result<Value, (String, &'static str)> {
    let wrong = |name: &str, message| Err((name.to_owned(), message));
    let query = received.parts.uri.query().unwrap_or_default();
    let unknown = form_urlencoded::parse(query.as_bytes())
        .map(|(name, _)| name.into_owned())
        .find(|name| !PARAMETERS.contains(&name.as_str()));
    if let Some(name) = unknown {
        return Err((name, "Unknown field"));
    }
    let get = |name: &str| received.query(name).unwrap_or_default();
    for (name, value) in FIXED {
        if get(name) != value {
            return wrong(name, "Not a valid choice");
        }
    }
    if names(&get("dimensions")) != ["campaign_id", "stat_time_day"] {
        return wrong("dimensions", "Not a valid combination");
    }
    let metrics = names(&get("metrics"));
    if metrics.is_empty() || metrics.iter().any(|one| !METRICS.contains(&one.as_str())) {
        return wrong("metrics", "Not a valid choice");
    }
    let days = days(&get("start_date"), &get("end_date"), received.now)
        .map_err(|message| ("start_date".to_owned(), message))?;
    if (days.1 - days.0).get_days() >= DAYS_MAX {
        return wrong("end_date", "The range by day must not exceed 30 days");
    }
    let number = |name: &str| get(name).parse::<usize>().unwrap_or_default();
    let (page, size) = (number("page"), number("page_size"));
    if page == 0 {
        return wrong("page", "Must be 1 or more");
    }
    if !(1..=PAGE_SIZE_MAX).contains(&size) {
        return wrong("page_size", "Must be from 1 to 1000");
    }
    let size = account.page_limit(size);
    let (rows, all) = account.page(days, (page - 1) * size, size);
    let list: Vec<Value> = rows
        .iter()
        .map(|row| shown(account, row, &metrics))
        .collect();
    let info = json!({"page": page, "page_size": size, "total_number": all,
        "total_page": all.div_ceil(size).max(1)});
    Ok(json!({"list": list, "page_info": info}))
}

fn shown(account: &ReportAccount, row: &SpendRow, metrics: &[String]) -> Value {
    let mut shown = json!({
        "dimensions": {"campaign_id": row.campaign_id, "stat_time_day": format!("{} 00:00:00", row.day)},
        "metrics": {},
    });
    for metric in metrics {
        shown["metrics"][metric] = json!(match metric.as_str() {
            "spend" => row.spend(),
            "currency" => account.currency.clone(),
            "campaign_name" => row.campaign_name.clone(),
            _ => "0".to_owned(),
        });
    }
    shown
}
