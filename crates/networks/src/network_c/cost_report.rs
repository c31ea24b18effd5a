//! TikTok API for Business: `GET /open_api/v1.3/report/integrated/get/` by campaign and day. The
//! access token needs the scope for reports only.

use crate::account::UnusableIntegration;
use crate::cost_report::{ReportRuling, ReportSettings, by_status, row, unreadable};
use crate::json::{integer, list, text};
use crate::request::{NetworkRequest, RequestMethod};
use crate::response::NetworkResponse;
use crate::secret::Secret;
use crate::text::form_encode;
use serde_json::Value;
use tributary_domain::cost_source::DaySpan;
use tributary_domain::vocabulary::money::Amount;

/// Rows per page: the maximum.
const PAGE_ROWS: &str = "1000";
const TOO_MANY_REQUESTS: i64 = 40_100;
const TRANSIENT: i64 = 40_700;
/// Length of the day in `2026-11-01 00:00:00`.
const DAY_CHARS: usize = 10;

/// A TikTok advertiser, for cost reports.
#[derive(Debug, Clone)]
pub struct TikTokReport {
    advertiser_id: String,
    access_token: Secret,
}

impl TikTokReport {
    pub(crate) fn open(settings: &ReportSettings<'_>) -> Result<Self, UnusableIntegration> {
        Ok(Self {
            advertiser_id: settings.required("accountId")?,
            access_token: settings.required_secret("accessToken")?,
        })
    }

    pub(crate) const fn secret(&self) -> &Secret {
        &self.access_token
    }

    pub(crate) fn request(&self, span: DaySpan, page: Option<&str>) -> NetworkRequest {
        let query = form_encode(&[
            ("advertiser_id", &self.advertiser_id),
            ("service_type", "AUCTION"),
            ("report_type", "BASIC"),
            ("data_level", "AUCTION_CAMPAIGN"),
            ("dimensions", r#"["campaign_id","stat_time_day"]"#),
            ("metrics", r#"["spend","currency"]"#),
            ("start_date", &span.from.to_string()),
            ("end_date", &span.to.to_string()),
            ("page", page.unwrap_or("1")),
            ("page_size", PAGE_ROWS),
        ]);
        NetworkRequest {
            method: RequestMethod::Get,
            path_and_query: format!("/open_api/v1.3/report/integrated/get/?{query}"),
            headers: vec![("access-token", self.access_token.expose().to_owned())],
            body: Vec::new(),
        }
    }

    pub(crate) fn read(span: DaySpan, response: &NetworkResponse) -> ReportRuling {
        let Some(body) = response.object() else {
            return by_status(response);
        };
        match integer(&body, "code") {
            Some(0) if response.is_success() => read_page(span, body.get("data")),
            Some(code) if code != 0 => judge_code(code, &body, response),
            _ => by_status(response),
        }
    }
}

fn read_page(span: DaySpan, data: Option<&Value>) -> ReportRuling {
    let Some(data) = data else {
        return unreadable("TikTok's answer is not a report.");
    };
    let read = |one: &Value| {
        let (dimensions, metrics) = (one.get("dimensions")?, one.get("metrics")?);
        let spend = text(metrics, "spend").and_then(|spend| Amount::parse_number(spend).ok());
        row(
            span,
            text(dimensions, "stat_time_day").and_then(|day| day.get(..DAY_CHARS)),
            text(dimensions, "campaign_id"),
            spend,
            text(metrics, "currency"),
        )
    };
    let rows: Option<Vec<_>> = list(data, "list").map(read).collect();
    let info = data.get("page_info");
    let number = |name| info.and_then(|info| integer(info, name));
    match (rows, number("page"), number("total_page")) {
        (Some(rows), Some(page), Some(pages)) => ReportRuling::Page {
            rows,
            next: (page < pages).then(|| page.saturating_add(1).to_string()),
        },
        _ => unreadable("TikTok's report has an unexpected form."),
    }
}

fn judge_code(code: i64, body: &Value, response: &NetworkResponse) -> ReportRuling {
    let message = text(body, "message").unwrap_or("no message.").to_owned();
    let written = code.to_string();
    let is_temporary = matches!(code, TOO_MANY_REQUESTS | TRANSIENT | 50_000..=59_999)
        || response.status == 429
        || response.status >= 500;
    if is_temporary {
        return ReportRuling::Retry {
            code: written,
            message,
            wait: None,
        };
    }
    let advice = match code {
        40_001 => "Give the access token the scope for reports and access to the advertiser.",
        40_002 => "Check the advertiser id.",
        40_101..=40_199 => "Create a new access token.",
        _ => "Check the advertiser id and the access token.",
    };
    ReportRuling::Refused {
        code: written,
        message: format!("{message} {advice}"),
    }
}
