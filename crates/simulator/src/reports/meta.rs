//! `GET /{version}/act_{id}/insights`: Meta's insights by campaign and day.

use super::{ReportAccount, SpendRow, days, is_digits};
use crate::network::{Endpoint, SimulatedNetwork};
use crate::registry::is_valid_credential;
use crate::reply::{SimulatedOutcome, SimulatedReply};
use crate::request_pipeline::{self, EndpointHandler, ReceivedRequest, RequestRoute};
use crate::state::{SimulatorState, hex};
use axum::extract::{Path, Request, State as Shared};
use axum::http::StatusCode;
use axum::response::Response;
use hmac::{Hmac, KeyInit, Mac};
use jiff::civil::Date;
use serde_json::{Map, Value, json};
use sha2::Sha256;
use std::sync::Arc;
use url::form_urlencoded;

const PARAMETERS: [&str; 8] = [
    "level",
    "time_increment",
    "fields",
    "time_range",
    "limit",
    "after",
    "access_token",
    "appsecret_proof",
];
const FIELDS: [&str; 6] = [
    "campaign_id",
    "campaign_name",
    "spend",
    "account_currency",
    "impressions",
    "clicks",
];
/// Most rows per page that the simulator accepts.
const LIMIT_MAX: usize = 5_000;
/// First supported version.
const FIRST_VERSION: u32 = 21;

const HANDLER: EndpointHandler = EndpointHandler {
    account_of: |_| None,
    process,
    expired: |_| bad_token(),
};

pub(crate) async fn insights(
    Shared(world): Shared<Arc<SimulatorState>>,
    Path((_, account)): Path<(String, String)>,
    request: Request,
) -> Response {
    let account = account.strip_prefix("act_").map(str::to_owned);
    let route = RequestRoute {
        network: SimulatedNetwork::NetworkA,
        endpoint: Endpoint::Reports,
        account,
    };
    request_pipeline::handle(&world, route, &HANDLER, request).await
}

fn error(code: u32, subcode: Option<u32>, kind: &str, message: &str) -> SimulatedOutcome {
    let mut error = json!({"message": message, "type": kind, "code": code,
        "fbtrace_id": "AsimulatedReport"});
    if let Some(subcode) = subcode {
        error["error_subcode"] = json!(subcode);
    }
    let reply = SimulatedReply::json(StatusCode::BAD_REQUEST, &json!({"error": error}));
    SimulatedOutcome::refused(reply, code.to_string(), message)
}

fn bad_token() -> SimulatedOutcome {
    let message = "Error validating access token: Session has expired or the token is not valid.";
    error(190, Some(463), "OAuthException", message)
}

fn invalid(parameter: &str, message: &str) -> SimulatedOutcome {
    let message = format!("(#100) param {parameter} {message}");
    error(100, None, "OAuthException", &message)
}

/// A valid question.
struct Question {
    fields: Vec<String>,
    days: (Date, Date),
    limit: usize,
    start: usize,
}

fn process(world: &SimulatorState, received: &mut ReceivedRequest) -> SimulatedOutcome {
    let path = received.parts.uri.path().to_owned();
    let version = path.split('/').nth(1).unwrap_or_default();
    let major = version.strip_prefix('v').and_then(|it| it.split_once('.'));
    let major =
        major.and_then(|(major, minor)| is_digits(minor).then(|| major.parse::<u32>().ok())?);
    match major {
        None => return error(2_500, None, "OAuthException", "Unknown path components."),
        Some(major) if major < FIRST_VERSION => {
            let message = "You are calling a deprecated version of the Ads API.";
            return error(2_635, None, "OAuthException", message);
        }
        Some(_) => {}
    }
    let account = match admit(world, received) {
        Ok(account) => account,
        Err(refused) => return refused,
    };
    match question(received) {
        Ok(question) => answer(&account, &question, version),
        Err((parameter, message)) => invalid(&parameter, message),
    }
}

fn admit(
    world: &SimulatorState,
    received: &ReceivedRequest,
) -> Result<ReportAccount, SimulatedOutcome> {
    let token = received.query("access_token").unwrap_or_default();
    if token.is_empty() {
        let message = "An access token is required to request this resource.";
        return Err(error(104, None, "OAuthException", message));
    }
    let id = received.route.account.clone().unwrap_or_default();
    let network = SimulatedNetwork::NetworkA;
    let registered = world.state().reports.get(network, &id);
    let expected = registered
        .as_ref()
        .and_then(|one| one.access_token.as_deref());
    if !is_valid_credential(&token, expected) {
        return Err(bad_token());
    }
    let account = match registered {
        Some(account) => account,
        None if world.options.open && is_digits(&id) => ReportAccount::empty(network, &id),
        None => {
            let message = "Unsupported get request. Object with this ID does not exist, cannot be \
                           loaded due to missing permissions, or does not support this operation.";
            return Err(error(100, Some(33), "GraphMethodException", message));
        }
    };
    if let Some(secret) = &account.app_secret {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes())
            .map_err(|_| invalid("appsecret_proof", "is invalid"))?;
        mac.update(token.as_bytes());
        let proof = hex(&mac.finalize().into_bytes());
        if received.query("appsecret_proof") != Some(proof) {
            let message = "Invalid appsecret_proof provided in the API argument";
            return Err(error(100, None, "GraphMethodException", message));
        }
    }
    Ok(account)
}

fn question(received: &ReceivedRequest) -> Result<Question, (String, &'static str)> {
    let query = received.parts.uri.query().unwrap_or_default();
    let pairs: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect();
    for (index, (name, _)) in pairs.iter().enumerate() {
        if !PARAMETERS.contains(&name.as_str()) {
            return Err((name.clone(), "is not supported"));
        }
        if pairs[..index].iter().any(|(earlier, _)| earlier == name) {
            return Err((name.clone(), "occurs twice"));
        }
    }
    let get = |name: &str| received.query(name).unwrap_or_default();
    let wrong = |name: &str, message| Err((name.to_owned(), message));
    if get("level") != "campaign" {
        return wrong("level", "must be campaign");
    }
    if get("time_increment") != "1" {
        return wrong("time_increment", "must be 1");
    }
    let fields: Vec<String> = get("fields").split(',').map(str::to_owned).collect();
    if fields.iter().any(|one| !FIELDS.contains(&one.as_str())) {
        return wrong("fields", "has a field that does not exist");
    }
    let range: Value = serde_json::from_str(&get("time_range")).unwrap_or_default();
    let keys: Vec<&String> = range
        .as_object()
        .map(Map::keys)
        .into_iter()
        .flatten()
        .collect();
    if keys != ["since", "until"] {
        return wrong("time_range", "must have since and until");
    }
    let text = |name: &str| range[name].as_str().unwrap_or_default().to_owned();
    let days = days(&text("since"), &text("until"), received.now)
        .map_err(|message| ("time_range".to_owned(), message))?;
    let limit = get("limit").parse().unwrap_or(25);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return wrong("limit", "is out of range");
    }
    let after = get("after");
    let start = match after.strip_prefix("cursor") {
        Some(start) => start.parse().ok(),
        None => after.is_empty().then_some(0),
    };
    let Some(start) = start else {
        return wrong("after", "is not a cursor");
    };
    Ok(Question {
        fields,
        days,
        limit,
        start,
    })
}

fn answer(account: &ReportAccount, question: &Question, version: &str) -> SimulatedOutcome {
    let (page, all) = account.page(question.days, question.start, question.limit);
    let data: Vec<Value> = page
        .iter()
        .map(|row| shown(account, row, &question.fields))
        .collect();
    let end = question.start + page.len();
    let mut body = json!({"data": data});
    if !page.is_empty() {
        let cursors = json!({"before": format!("cursor{}", question.start),
            "after": format!("cursor{end}")});
        body["paging"] = json!({"cursors": cursors});
    }
    if end < all {
        let id = &account.account_id;
        let next =
            format!("https://graph.facebook.com/{version}/act_{id}/insights?after=cursor{end}");
        body["paging"]["next"] = json!(next);
    }
    SimulatedOutcome::accepted(SimulatedReply::json(StatusCode::OK, &body))
}

/// Shows the fields that were asked for, and the days, which are always there.
fn shown(account: &ReportAccount, row: &SpendRow, fields: &[String]) -> Value {
    let mut shown = json!({"date_start": row.day.to_string(), "date_stop": row.day.to_string()});
    for field in fields {
        shown[field] = json!(match field.as_str() {
            "campaign_id" => row.campaign_id.clone(),
            "campaign_name" => row.campaign_name.clone(),
            "spend" => row.spend(),
            "account_currency" => account.currency.clone(),
            _ => "0".to_owned(),
        });
    }
    shown
}
