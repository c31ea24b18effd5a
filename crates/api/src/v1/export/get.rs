//! `GET /api/v1/apps/{appId}/export` — everything that was recorded, oldest first, as a file.

use super::stream::{Export, ExportFormat, ExportKind};
use crate::caller::Caller;
use crate::days::DayFilter;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, QUERY};
use crate::path::PathIds;
use crate::query::{QueryParameters, QueryString};
use crate::state::ApiState;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use tributary_domain::access::AppsRead;
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;

/// The first moment that an id of the log can carry.
const LOG_BEGIN: Timestamp = Timestamp::from_millis(0);
/// The last moment that an id of the log can carry: 48 bits of milliseconds.
const LOG_END: Timestamp = Timestamp::from_millis((1 << 48) - 1);

struct ExportQuery {
    kind: Option<ExportKind>,
    format: ExportFormat,
    days: DayFilter,
    timezone: Option<Timezone>,
}

fn read(parameters: &mut QueryParameters<'_>) -> ExportQuery {
    let unknown =
        |words: &str| Problem::new(FaultCode::UnknownValue, format!("Must be one of {words}."));
    let kind =
        |text: &str| ExportKind::parse(text).ok_or_else(|| unknown("events, installs, clicks"));
    let format = |text: &str| ExportFormat::parse(text).ok_or_else(|| unknown("csv, ndjson"));
    ExportQuery {
        kind: parameters.optional("kind", kind),
        format: parameters
            .optional("format", format)
            .unwrap_or(ExportFormat::Csv),
        days: DayFilter::read(parameters),
        timezone: parameters.optional("timezone", Timezone::parse),
    }
}

/// Whether the client takes gzip.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter();
    let words = accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    words.into_iter().any(|word| {
        let (name, weight) = word.split_once(';').unwrap_or((word, ""));
        let refused = matches!(weight.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000");
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/export", tag = "Analytics", operation_id = "export",
    summary = "Export raw data",
    description = "Every click, install or event, or those of some days, oldest first, as a file: a line each, streamed while it is read, packed \
                   with gzip where the client takes it. A file that breaks off is not whole. Addresses and user agents are \
                   not in it. Needs `apps:read`.",
    params(
        ("appId" = String, Path, description = "The app's id."),
        ("kind" = Option<String>, Query, description = "`events`, `installs` or `clicks`; `events` when absent."),
        ("format" = Option<String>, Query, description = "`csv` (RFC 4180, with a header) or `ndjson` (a JSON object a line); `csv` when absent."),
        ("from" = Option<String>, Query, description = "The first day, such as `2026-01-01`; from the beginning when absent."),
        ("to" = Option<String>, Query, description = "The last day, inclusive; to the end when absent."),
        ("timezone" = Option<String>, Query, description = "In which zone the days begin; the app's when absent."),
    ),
    extensions(("x-errors" = json!([API_KEY, QUERY, [Code::AppNotFound]]))),
    responses((status = 200, description = "The file.", content(
        (String = "text/csv"), (String = "application/x-ndjson"))))
)]
pub(crate) async fn get(
    caller: Caller<AppsRead>,
    ids: PathIds,
    query: QueryString,
    headers: HeaderMap,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let asked = query.read(read)?;
    let app = ids.app()?;
    let reader = caller.authorized.analytics_access();
    let own = state.store.app_timezone(&reader, app).await?;
    let (from, until) = asked.days.timestamps(&asked.timezone.unwrap_or(own));
    let export = Export {
        kind: asked.kind.unwrap_or(ExportKind::Events),
        format: asked.format,
        gzip: accepts_gzip(&headers),
        period: (from.unwrap_or(LOG_BEGIN), until.unwrap_or(LOG_END)),
        app,
        reader,
        state,
    };
    Ok(export.into_response(asked.days))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use rstest::rstest;

    #[rstest]
    #[case("gzip", true)]
    #[case("br, GZIP;q=0.5", true)]
    #[case("gzip;q=0", false)]
    #[case("identity", false)]
    #[case("", false)]
    fn clients_that_take_gzip(#[case] accepted: &'static str, #[case] expected: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(accepted));
        assert_eq!(accepts_gzip(&headers), expected);
    }
}
