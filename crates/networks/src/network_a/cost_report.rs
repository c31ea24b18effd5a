//! Meta Marketing API: `GET /{version}/act_{id}/insights` by campaign and day. A token with the
//! permission `ads_read` is enough.

use super::encode::appsecret_proof;
use crate::account::UnusableIntegration;
use crate::cost_report::{ReportRuling, ReportSettings, by_status, row, unreadable};
use crate::json::{integer, list, text};
use crate::request::{NetworkRequest, RequestMethod};
use crate::response::NetworkResponse;
use crate::secret::Secret;
use crate::text::form_encode;
use serde_json::Value;
use std::time::Duration;
use tributary_domain::cost_source::DaySpan;
use tributary_domain::vocabulary::money::Amount;

/// Rows per page. Meta documents no maximum for reports; larger pages are slower and fail more
/// often.
const PAGE_ROWS: &str = "500";
const FIELDS: &str = "campaign_id,campaign_name,spend,account_currency";
/// Too many calls. 80000 to 80099 count per use case.
const THROTTLING: [i64; 5] = [4, 17, 32, 341, 613];
/// Temporary errors.
const TRANSIENT: [i64; 2] = [1, 2];

/// A Meta ad account, for cost reports.
#[derive(Debug, Clone)]
pub struct MetaReport {
    account_id: String,
    api_version: String,
    access_token: Secret,
    app_secret: Option<Secret>,
}

impl MetaReport {
    pub(crate) fn open(settings: &ReportSettings<'_>) -> Result<Self, UnusableIntegration> {
        Ok(Self {
            account_id: settings.required("accountId")?,
            api_version: settings.required("apiVersion")?,
            access_token: settings.required_secret("accessToken")?,
            app_secret: settings.secret("appSecret"),
        })
    }

    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        std::iter::once(&self.access_token).chain(&self.app_secret)
    }

    pub(crate) fn request(&self, span: DaySpan, page: Option<&str>) -> NetworkRequest {
        let token = self.access_token.expose();
        let proof = self.app_secret.as_ref();
        let proof = proof.map(|secret| appsecret_proof(secret.expose(), token));
        let days = format!(r#"{{"since":"{}","until":"{}"}}"#, span.from, span.to);
        let mut query = vec![
            ("level", "campaign"),
            ("time_increment", "1"),
            ("fields", FIELDS),
            ("time_range", &*days),
            ("limit", PAGE_ROWS),
            ("access_token", token),
        ];
        query.extend(proof.as_deref().map(|proof| ("appsecret_proof", proof)));
        query.extend(page.map(|after| ("after", after)));
        let (version, account) = (&self.api_version, &self.account_id);
        NetworkRequest {
            method: RequestMethod::Get,
            path_and_query: format!("/{version}/act_{account}/insights?{}", form_encode(&query)),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    pub(crate) fn read(span: DaySpan, response: &NetworkResponse) -> ReportRuling {
        let Some(body) = response.object() else {
            return by_status(response);
        };
        if let Some(error) = body.get("error") {
            return judge_error(error, response);
        }
        if !response.is_success() || !body.get("data").is_some_and(Value::is_array) {
            return by_status(response);
        }
        let read = |one: &Value| {
            // Without a daily increment, a row would cover several days.
            let is_one_day = text(one, "date_start") == text(one, "date_stop");
            let amount = text(one, "spend").and_then(|spend| Amount::parse_number(spend).ok());
            row(
                span,
                text(one, "date_start").filter(|_| is_one_day),
                text(one, "campaign_id"),
                amount,
                text(one, "account_currency"),
            )
        };
        let rows: Option<Vec<_>> = list(&body, "data").map(read).collect();
        let Some(rows) = rows else {
            return unreadable("Meta's report has an unexpected row.");
        };
        let paging = body.get("paging");
        let cursor = paging.and_then(|paging| text(paging.get("cursors")?, "after"));
        // The URL in `next` contains the token, and is never followed.
        let has_next = paging.is_some_and(|paging| text(paging, "next").is_some());
        match (has_next, cursor) {
            (true, None) => unreadable("Meta's report names no next page."),
            (true, Some(cursor)) => ReportRuling::Page {
                rows,
                next: Some(cursor.to_owned()),
            },
            (false, _) => ReportRuling::Page { rows, next: None },
        }
    }
}

fn judge_error(error: &Value, response: &NetworkResponse) -> ReportRuling {
    let code = integer(error, "code").unwrap_or_default();
    let message = text(error, "message").unwrap_or("no message.").to_owned();
    let written = match integer(error, "error_subcode") {
        Some(subcode) => format!("{code}/{subcode}"),
        None => code.to_string(),
    };
    let is_throttled = THROTTLING.contains(&code) || (80_000..=80_099).contains(&code);
    let is_transient = TRANSIENT.contains(&code)
        || response.status >= 500
        || error.get("is_transient") == Some(&Value::Bool(true));
    if is_throttled || (is_transient && !matches!(code, 10 | 100 | 102 | 190 | 200 | 2_635)) {
        return ReportRuling::Retry {
            code: written,
            message,
            wait: regain_time(response),
        };
    }
    let advice = match code {
        102 | 190 => "Create a new access token with the permission ads_read.",
        3 | 10 | 200..=299 => {
            "Give the token's system user access to the ad account and the permission ads_read."
        }
        100 => "Check the account id, and the app secret if one is set.",
        2_635 => "Set a newer API version.",
        _ => "Check the account id and the access token.",
    };
    ReportRuling::Refused {
        code: written,
        message: format!("{message} {advice}"),
    }
}

/// Returns when Meta will accept calls again.
fn regain_time(response: &NetworkResponse) -> Option<Duration> {
    let usage = response.header("x-business-use-case-usage")?;
    let usage: Value = serde_json::from_str(usage).ok()?;
    let businesses = usage.as_object()?.values();
    let entries = businesses.filter_map(Value::as_array).flatten();
    let minutes = entries.filter_map(|entry| integer(entry, "estimated_time_to_regain_access"));
    let minutes = minutes
        .max()
        .and_then(|minutes| u64::try_from(minutes).ok());
    minutes.map(|minutes| Duration::from_secs(minutes.saturating_mul(60)))
}
