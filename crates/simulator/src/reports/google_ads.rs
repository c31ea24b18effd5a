//! `POST /{version}/customers/{id}/googleAds:search`: Google Ads' search by campaign and day.

use super::{ReportAccount, SpendRow, days, is_digits};
use crate::network::{Endpoint, SimulatedNetwork};
use crate::network_b::ADS_SCOPE;
use crate::registry::is_valid_credential;
use crate::reply::{SimulatedOutcome, SimulatedReply};
use crate::request_pipeline::{self, EndpointHandler, ReceivedRequest, RequestRoute};
use crate::state::SimulatorState;
use axum::extract::{Path, Request, State as Shared};
use axum::http::StatusCode;
use axum::response::Response;
use jiff::civil::Date;
use serde_json::{Value, json};
use std::sync::Arc;

/// Rows per page; it cannot be chosen.
const PAGE_ROWS: usize = 10_000;
/// Versions that are not retired.
const VERSIONS: [&str; 4] = ["v23", "v24", "v25", "v26"];
const FIELDS: [&str; 6] = [
    "campaign.id",
    "campaign.name",
    "segments.date",
    "metrics.cost_micros",
    "metrics.clicks",
    "customer.currency_code",
];

const HANDLER: EndpointHandler = EndpointHandler {
    account_of: |_| None,
    process,
    expired: |_| unauthenticated(),
};

pub(crate) async fn search(
    Shared(world): Shared<Arc<SimulatorState>>,
    Path((_, customer)): Path<(String, String)>,
    request: Request,
) -> Response {
    let route = RequestRoute {
        network: SimulatedNetwork::NetworkB,
        endpoint: Endpoint::Reports,
        account: Some(customer),
    };
    request_pipeline::handle(&world, route, &HANDLER, request).await
}

fn error(
    code: StatusCode,
    status: &str,
    (kind, reason): (&str, &str),
    message: &str,
) -> SimulatedOutcome {
    let failure = json!({
        "@type": "type.googleapis.com/google.ads.googleads.v26.errors.GoogleAdsFailure",
        "errors": [{"errorCode": {kind: reason}, "message": message}],
        "requestId": "simulatedReport",
    });
    let body = json!({"error": {"code": code.as_u16(), "message": "Request contains an error.",
        "status": status, "details": [failure]}});
    SimulatedOutcome::refused(SimulatedReply::json(code, &body), reason, message)
}

fn invalid(kind: &str, reason: &str, message: &str) -> SimulatedOutcome {
    let code = StatusCode::BAD_REQUEST;
    error(code, "INVALID_ARGUMENT", (kind, reason), message)
}

fn unauthenticated() -> SimulatedOutcome {
    let reason = ("authenticationError", "OAUTH_TOKEN_INVALID");
    let message = "OAuth token in the header is not valid.";
    error(StatusCode::UNAUTHORIZED, "UNAUTHENTICATED", reason, message)
}

fn denied(kind: &str, reason: &str, message: &str) -> SimulatedOutcome {
    let code = StatusCode::FORBIDDEN;
    error(code, "PERMISSION_DENIED", (kind, reason), message)
}

fn process(world: &SimulatorState, received: &mut ReceivedRequest) -> SimulatedOutcome {
    let version = received.parts.uri.path().split('/').nth(1);
    if !version.is_some_and(|version| VERSIONS.contains(&version)) {
        let message = "The version is not supported.";
        return invalid("requestError", "UNSUPPORTED_VERSION", message);
    }
    let account = match admit(world, received) {
        Ok(account) => account,
        Err(refused) => return refused,
    };
    let Some(Value::Object(body)) = received.json.take() else {
        return invalid("requestError", "UNKNOWN", "Invalid JSON payload received.");
    };
    if body.contains_key("pageSize") {
        let message = "Setting the page size is not supported.";
        return invalid("requestError", "PAGE_SIZE_NOT_SUPPORTED", message);
    }
    if body
        .keys()
        .any(|name| name != "query" && name != "pageToken")
    {
        return invalid("requestError", "UNKNOWN", "Unknown name in the payload.");
    }
    let query = body
        .get("query")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let (fields, days, with_spend) = match parse(query, received.now) {
        Ok(parsed) => parsed,
        Err((reason, message)) => return invalid("queryError", reason, message),
    };
    let start = match body.get("pageToken").map(|token| token.as_str()) {
        None => Some(0),
        Some(token) => token.and_then(|token| token.strip_prefix("page")?.parse().ok()),
    };
    let Some(start) = start else {
        let message = "Page token was invalid.";
        return invalid("requestError", "INVALID_PAGE_TOKEN", message);
    };
    let mut account = account;
    account.rows.retain(|row| !with_spend || row.micros > 0);
    answer(&account, &fields, days, start)
}

fn admit(
    world: &SimulatorState,
    received: &ReceivedRequest,
) -> Result<ReportAccount, SimulatedOutcome> {
    let state = world.state();
    let bearer = received.bearer().unwrap_or_default();
    match state.tokens.has_scope(bearer, ADS_SCOPE, received.now) {
        None => return Err(unauthenticated()),
        Some(false) => {
            let message = "Request had insufficient authentication scopes.";
            return Err(denied(
                "authorizationError",
                "ACTION_NOT_PERMITTED",
                message,
            ));
        }
        Some(true) => {}
    }
    let id = received.route.account.clone().unwrap_or_default();
    if !is_digits(&id) {
        let message = "Invalid customer ID.";
        return Err(invalid("requestError", "INVALID_CUSTOMER_ID", message));
    }
    let registered = state.reports.get(SimulatedNetwork::NetworkB, &id);
    let developer = received.header("developer-token").unwrap_or_default();
    if developer.is_empty() {
        let message = "The developer-token header is missing.";
        let reason = "DEVELOPER_TOKEN_PARAMETER_MISSING";
        return Err(invalid("headerError", reason, message));
    }
    let expected = registered.as_ref();
    let expected = expected.and_then(|one| one.developer_token.as_deref());
    if !is_valid_credential(developer, expected) {
        let message = "The developer token is not valid.";
        let reason = "DEVELOPER_TOKEN_PROHIBITED";
        return Err(denied("authorizationError", reason, message));
    }
    let login = received.header("login-customer-id");
    if login.is_some_and(|login| !is_digits(login)) {
        let message = "The login customer ID must be digits only.";
        return Err(invalid("headerError", "INVALID_LOGIN_CUSTOMER_ID", message));
    }
    let account = match registered {
        Some(account) => Some(account),
        None if world.options.open => Some(ReportAccount::empty(SimulatedNetwork::NetworkB, &id)),
        None => None,
    };
    let is_managed = |account: &ReportAccount| {
        let manager = account.login_account_id.as_deref();
        manager.is_none_or(|manager| login == Some(manager))
    };
    account.filter(is_managed).ok_or_else(|| {
        let message = "User doesn't have permission to access customer. Note: If you're accessing \
                       a client customer, the manager's customer id must be set in the \
                       'login-customer-id' header.";
        denied("authorizationError", "USER_PERMISSION_DENIED", message)
    })
}

type ParsedQuery = (Vec<String>, (Date, Date), bool);

/// Parses the one form of query that a cost report needs.
fn parse(query: &str, now: i64) -> Result<ParsedQuery, (&'static str, &'static str)> {
    let syntax = ("BAD_FIELD_NAME", "Error in query: unexpected input.");
    let rest = query.strip_prefix("SELECT ").ok_or(syntax)?;
    let (fields, rest) = rest.split_once(" FROM campaign WHERE ").ok_or(syntax)?;
    let fields: Vec<String> = fields.split(", ").map(str::to_owned).collect();
    if fields.iter().any(|one| !FIELDS.contains(&one.as_str())) {
        let message = "Unrecognized field in the query.";
        return Err(("UNRECOGNIZED_FIELD", message));
    }
    let rest = rest.strip_prefix("segments.date BETWEEN '").ok_or(syntax)?;
    let (first, rest) = rest.split_once("' AND '").ok_or(syntax)?;
    let (last, rest) = rest.split_once('\'').ok_or(syntax)?;
    let days = days(first, last, now)
        .map_err(|message| ("INVALID_VALUE_WITH_BETWEEN_OPERATOR", message))?;
    match rest {
        "" => Ok((fields, days, false)),
        " AND metrics.cost_micros > 0" => Ok((fields, days, true)),
        _ => Err(syntax),
    }
}

fn answer(
    account: &ReportAccount,
    fields: &[String],
    days: (Date, Date),
    start: usize,
) -> SimulatedOutcome {
    let (page, all) = account.page(days, start, PAGE_ROWS);
    let results: Vec<Value> = page.iter().map(|row| shown(account, row, fields)).collect();
    let end = start + page.len();
    let mask: Vec<String> = fields.iter().map(|field| camel_case(field)).collect();
    let mut body = json!({"fieldMask": mask.join(",")});
    if !results.is_empty() {
        body["results"] = json!(results);
    }
    if end < all {
        body["nextPageToken"] = json!(format!("page{end}"));
    }
    SimulatedOutcome::accepted(SimulatedReply::json(StatusCode::OK, &body))
}

/// Shows the fields that were asked for. Integers are text, as in Google's JSON.
fn shown(account: &ReportAccount, row: &SpendRow, fields: &[String]) -> Value {
    let id = &account.account_id;
    let campaign = format!("customers/{id}/campaigns/{}", row.campaign_id);
    let mut shown = json!({"campaign": {"resourceName": campaign}});
    for field in fields {
        let Some((section, name)) = field.split_once('.') else {
            continue;
        };
        let value = match field.as_str() {
            "campaign.id" => row.campaign_id.clone(),
            "campaign.name" => row.campaign_name.clone(),
            "segments.date" => row.day.to_string(),
            "metrics.cost_micros" => row.micros.to_string(),
            "customer.currency_code" => account.currency.clone(),
            _ => "0".to_owned(),
        };
        if section == "customer" {
            shown[section]["resourceName"] = json!(format!("customers/{id}"));
        }
        shown[section][camel_case(name)] = json!(value);
    }
    shown
}

fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |mut written, part| {
        let (head, tail) = part.split_at(part.len().min(1));
        written.push_str(&head.to_uppercase());
        written.push_str(tail);
        written
    })
}
