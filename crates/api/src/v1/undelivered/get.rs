//! `GET /api/v1/apps/{appId}/undelivered` — counts what the networks did not receive, by reason.

use super::shape::{UndeliveredEnvelope, UndeliveredMeta, UndeliveredOut, example};
use crate::body::JsonResponse;
use crate::caller::ReportCaller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, QUERY};
use crate::path::PathIds;
use crate::query::{QueryParameters, QueryString};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use serde_json::json;
use tributary_domain::access::Environment;
use tributary_domain::access::resource::DeliveriesRead;
use tributary_domain::event::name::canonical;
use tributary_domain::forwarding::undelivered::{UndeliveredCounts, UndeliveredQuery};
use tributary_domain::integration::Network;
use tributary_domain::report::range::days_before;
use tributary_domain::vocabulary::calendar::{day_bounds, today};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::text::check_length;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;

/// Days before today in the default period, which then covers seven days.
const DAYS_BEFORE: i32 = 6;
/// Longest event name in characters. Longer names match nothing.
const NAME_CHARS_MAX: usize = 500;

/// Requested period and filters.
struct UndeliveredFilters {
    from: Option<Day>,
    timezone: Option<Timezone>,
    network: Option<Network>,
    event: Option<String>,
}

fn read(parameters: &mut QueryParameters<'_>) -> UndeliveredFilters {
    let network = |text: &str| {
        let message = "Must be one of network_a, network_b, network_c, network_d.";
        let unknown = || Problem::new(FaultCode::UnknownValue, message);
        Network::parse(text).ok_or_else(unknown)
    };
    let event = |text: &str| {
        check_length(text, 1, NAME_CHARS_MAX)?;
        Ok(canonical(text).0)
    };
    UndeliveredFilters {
        from: parameters.optional("from", Day::parse),
        timezone: parameters.optional("timezone", Timezone::parse),
        network: parameters.optional("network", network),
        event: parameters.optional("event", event),
    }
}

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/undelivered", tag = "Deliveries",
    operation_id = "getUndelivered",
    summary = "Count what was not delivered",
    description = "Counts live events that a network did not receive, by network and reason, most \
                   frequent first: events that were skipped, and deliveries that ended without \
                   arriving. Only the newest events are counted; `meta.completeFrom` is present if \
                   earlier ones are missing. Test events are never forwarded, so a test key gets an \
                   empty list. Requires `apps:read`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("network" = inline(Option<crate::choices::NetworkChoice>), Query,
            description = "Filter by network."),
        ("event" = Option<String>, Query, description = "Filter by event name."),
        ("from" = Option<String>, Query,
            description = "First day, by event time, such as `2026-01-01`. If omitted, the period \
                           covers 7 days. It ends now."),
        ("timezone" = Option<String>, Query,
            description = "Time zone for day boundaries. Default: the app's time zone."),
    ),
    extensions(("x-errors" = json!([API_KEY, QUERY, [Code::AppNotFound]]))),
    responses((status = 200, description = "The groups, at most 200.",
        body = inline(UndeliveredEnvelope), example = json!(example())))
)]
pub(crate) async fn get(
    caller: ReportCaller<DeliveriesRead>,
    ids: PathIds,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let filters = query.read(read)?;
    let (app, reader) = (ids.app()?, &caller.authorized);
    let figures = reader.analytics_access();
    let own = state.store.app_timezone(&figures, app).await?;
    let counts = if reader.environment() == Environment::Test {
        UndeliveredCounts::default()
    } else {
        let wanted = filters.into_query(state.runtime.now(), own);
        state.store.undelivered(reader, app, wanted).await?
    };
    let groups = counts.groups();
    let meta = UndeliveredMeta::of(&counts, groups.len());
    Ok(JsonResponse::ok(UndeliveredOut::all(groups)).with_meta(json!(meta)))
}

impl UndeliveredFilters {
    /// Builds the store's query. `own` is the app's time zone.
    fn into_query(self, now: Timestamp, own: Timezone) -> UndeliveredQuery {
        let zone = self.timezone.unwrap_or(own);
        let first = self
            .from
            .unwrap_or_else(|| days_before(today(now, &zone), DAYS_BEFORE));
        let (since, _) = day_bounds(Some(first), None, &zone);
        UndeliveredQuery {
            since: since.unwrap_or(Timestamp::from_millis(0)),
            network: self.network,
            event: self.event,
        }
    }
}
