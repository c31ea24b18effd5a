//! Google Ads API: `POST /{version}/customers/{id}/googleAds:search` by campaign and day.

use super::account::TokenGrant;
use super::service_account::ServiceAccount;
use super::token::grant_request;
use crate::account::UnusableIntegration;
use crate::cost_report::{ReportRuling, ReportSettings, by_status, row, unreadable};
use crate::json::{self, integer, list, text};
use crate::request::NetworkRequest;
use crate::response::NetworkResponse;
use crate::secret::Secret;
use serde::Serialize;
use serde_json::Value;
use tributary_domain::cost_source::DaySpan;
use tributary_domain::vocabulary::money::Amount;

/// OAuth scope. Google Ads has none that only reads; the rights of the user or service account in
/// the Google Ads account decide, so it should have the access level "read only".
const SCOPE: &str = "https://www.googleapis.com/auth/adwords";

/// A Google Ads account, for cost reports.
#[derive(Debug, Clone)]
pub struct GoogleAdsReport {
    account_id: String,
    login_account_id: Option<String>,
    api_version: String,
    developer_token: Secret,
    grant: TokenGrant,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SearchBody<'a> {
    query: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    page_token: Option<&'a str>,
}

impl GoogleAdsReport {
    pub(crate) fn open(settings: &ReportSettings<'_>) -> Result<Self, UnusableIntegration> {
        let grant = match settings.secret("serviceAccountKey") {
            Some(file) => TokenGrant::ServiceAccount(ServiceAccount::read(file)?),
            None => TokenGrant::RefreshToken {
                client_id: settings.required("clientId")?,
                client_secret: settings.required_secret("clientSecret")?,
                refresh_token: settings.required_secret("refreshToken")?,
            },
        };
        Ok(Self {
            account_id: settings.required("accountId")?,
            login_account_id: settings.text("loginAccountId"),
            api_version: settings.required("apiVersion")?,
            developer_token: settings.required_secret("developerToken")?,
            grant,
        })
    }

    pub(crate) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        std::iter::once(&self.developer_token).chain(self.grant.secrets())
    }

    pub(crate) fn token_request(&self, now: i64) -> NetworkRequest {
        grant_request(&self.grant, SCOPE, now)
    }

    pub(crate) fn request(
        &self,
        span: DaySpan,
        page: Option<&str>,
        access_token: Option<&Secret>,
    ) -> NetworkRequest {
        let query = format!(
            "SELECT campaign.id, segments.date, metrics.cost_micros, customer.currency_code \
             FROM campaign WHERE segments.date BETWEEN '{}' AND '{}' AND metrics.cost_micros > 0",
            span.from, span.to
        );
        let body = json::bytes(&SearchBody {
            query,
            page_token: page,
        });
        let token = access_token.map_or("", Secret::expose);
        let (version, account) = (&self.api_version, &self.account_id);
        let path = format!("/{version}/customers/{account}/googleAds:search");
        let authorization = ("authorization", format!("Bearer {token}"));
        let mut request = NetworkRequest::json(path, Some(authorization), body);
        let developer = self.developer_token.expose().to_owned();
        request.headers.push(("developer-token", developer));
        let login = self.login_account_id.clone();
        request
            .headers
            .extend(login.map(|login| ("login-customer-id", login)));
        request
    }

    pub(crate) fn read(span: DaySpan, response: &NetworkResponse) -> ReportRuling {
        let body = response.object();
        if response.is_success() {
            // A report without rows is an empty object.
            return match body {
                Some(body) => read_page(span, &body),
                None => unreadable("Google's answer is not a report."),
            };
        }
        match body.as_ref().and_then(|body| body.get("error")) {
            Some(error) => judge_error(error, response),
            None if response.status == 401 => ReportRuling::TokenRefused {
                code: "401".to_owned(),
                message: "Google rejected the access token.".to_owned(),
            },
            None => by_status(response),
        }
    }
}

fn read_page(span: DaySpan, body: &Value) -> ReportRuling {
    let read = |one: &Value| {
        let part = |section: &str, name: &str| one.get(section)?.get(name).cloned();
        let micros = one.get("metrics").and_then(|it| integer(it, "costMicros"));
        let words = |value: Option<Value>| match value? {
            Value::String(text) => Some(text),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        row(
            span,
            words(part("segments", "date")).as_deref(),
            words(part("campaign", "id")).as_deref(),
            micros.map(Amount::from_micros),
            words(part("customer", "currencyCode")).as_deref(),
        )
    };
    let rows: Option<Vec<_>> = list(body, "results").map(read).collect();
    match rows {
        Some(rows) => ReportRuling::Page {
            rows,
            next: text(body, "nextPageToken").map(str::to_owned),
        },
        None => unreadable("Google's report has an unexpected row."),
    }
}

/// Returns Google Ads' own error, such as `USER_PERMISSION_DENIED`, and its message.
fn ads_error(error: &Value) -> Option<(&str, Option<&str>)> {
    let failures = list(error, "details").flat_map(|detail| list(detail, "errors"));
    let mut codes = failures.filter_map(|failure| {
        let code = failure.get("errorCode")?.as_object()?.values().next()?;
        Some((code.as_str()?, text(failure, "message")))
    });
    codes.next()
}

fn judge_error(error: &Value, response: &NetworkResponse) -> ReportRuling {
    let found = ads_error(error);
    let code = found.map(|(code, _)| code).or(text(error, "status"));
    let code = code.map_or_else(|| response.status.to_string(), str::to_owned);
    let message = found.and_then(|(_, message)| message);
    let message = message.or(text(error, "message")).unwrap_or("no message.");
    match response.status {
        401 if !matches!(&*code, "NOT_ADS_USER" | "CUSTOMER_NOT_FOUND") => {
            ReportRuling::TokenRefused {
                code,
                message: message.to_owned(),
            }
        }
        400..=407 | 410 | 422 => {
            let advice = match &*code {
                "DEVELOPER_TOKEN_NOT_APPROVED" | "DEVELOPER_TOKEN_PROHIBITED" => {
                    "Apply for access for the developer token in the API Center."
                }
                "USER_PERMISSION_DENIED" | "PERMISSION_DENIED" => {
                    "Give the user or service account read access to the Google Ads account, and \
                     set the manager account if there is one."
                }
                "UNSUPPORTED_VERSION" => "Set a newer API version.",
                _ => "Check the account ids, the developer token and the API version.",
            };
            ReportRuling::Refused {
                code,
                message: format!("{message} {advice}"),
            }
        }
        _ => ReportRuling::Retry {
            code,
            message: message.to_owned(),
            wait: None,
        },
    }
}
