//! `GET /api/v1/apps/{appId}/export` — streams raw data as a file, oldest first.

use super::stream::{Export, ExportFormat, ExportKind};
use crate::caller::ExportCaller;
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
use tributary_domain::audit::Action;
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;
use tributary_store::ActionNote;

/// Earliest time that a log id can contain.
const LOG_BEGIN: Timestamp = Timestamp::from_millis(0);
/// Latest time that a log id can contain: 48 bits of milliseconds.
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

/// Tells whether the client accepts gzip.
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
    description = "Streams all clicks, installs or events, or those from some days, as a file with \
                   one line per record, oldest first. Compressed with gzip if the client accepts \
                   it. If the connection breaks, the file is incomplete. A client that reads \
                   too slowly is disconnected. Each key and organization may run a few exports at \
                   a time; further ones get 429. IP addresses and user agents are not included. \
                   Requires `apps:read`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("kind" = Option<String>, Query,
            description = "`events`, `installs` or `clicks`. Default: `events`."),
        ("format" = Option<String>, Query,
            description = "`csv` (RFC 4180, with a header row) or `ndjson` (one JSON object per \
                           line). Default: `csv`."),
        ("from" = Option<String>, Query,
            description = "First day, such as `2026-01-01`. If omitted, the export starts with the first record."),
        ("to" = Option<String>, Query,
            description = "Last day, inclusive. Default: the last record."),
        ("timezone" = Option<String>, Query,
            description = "Time zone for day boundaries. Default: the app's time zone."),
    ),
    extensions(("x-errors" = json!([API_KEY, QUERY, [Code::AppNotFound]]))),
    responses((status = 200, description = "The file.", content(
        (String = "text/csv"), (String = "application/x-ndjson"))))
)]
pub(crate) async fn get(
    caller: ExportCaller<AppsRead>,
    ids: PathIds,
    query: QueryString,
    headers: HeaderMap,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let request = query.read(read)?;
    let app = ids.app()?;
    let reader = caller.authorized.analytics_access();
    let own = state.store.app_timezone(&reader, app).await?;
    let kind = request.kind.unwrap_or(ExportKind::Events);
    let note = ActionNote {
        organization: caller.authorized.organization_of(app)?,
        action: Action::DataExported,
        app: Some(app),
        target: kind.as_str().to_owned(),
    };
    state.store.note_action(note, caller.origin(&state)).await?;
    let (from, until) = request.days.timestamps(&request.timezone.unwrap_or(own));
    let export = Export {
        kind,
        format: request.format,
        gzip: accepts_gzip(&headers),
        period: (from.unwrap_or(LOG_BEGIN), until.unwrap_or(LOG_END)),
        app,
        reader,
        _slot: caller.slot,
        state,
    };
    Ok(export.into_response(request.days))
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
    fn clients_that_accept_gzip(#[case] accepted: &'static str, #[case] expected: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(accepted));
        assert_eq!(accepts_gzip(&headers), expected);
    }
}
