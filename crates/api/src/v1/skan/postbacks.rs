//! `GET /api/v1/apps/{appId}/skan/postbacks` — lists postbacks, newest first by arrival.

use super::postback_shape::{PostbackListEnvelope, PostbackOut, example};
use super::query_values::{ad_network_id, parse_choice, protocol};
use crate::caller::{Caller, ReportCaller};
use crate::days::DayFilter;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, PAGE_QUERY};
use crate::page::{List, PageQuery};
use crate::path::PathIds;
use crate::query::{QueryParameters, QueryString, parse_bool};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::AppsRead;
use tributary_domain::skan::postback::{ConversionType, Protocol, Signature};
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::ListScope;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;
use tributary_store::{PostbackFilter, PostbackPage};

/// Requested filter, before its days are resolved in a time zone.
struct PostbacksQuery {
    filter: PostbackFilter,
    days: DayFilter,
    timezone: Option<Timezone>,
}

fn source_identifier(text: &str) -> Result<String, Problem> {
    let fits = (2..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let invalid = || Problem::new(FaultCode::InvalidFormat, "Must be 2 to 4 digits.");
    fits.then(|| text.to_owned()).ok_or_else(invalid)
}

fn read(parameters: &mut QueryParameters<'_>) -> (PostbacksQuery, PageQuery) {
    let signature = |text: &str| parse_choice(text, &Signature::ALL, Signature::as_str);
    let conversion_type =
        |text: &str| parse_choice(text, &ConversionType::ALL, ConversionType::as_str);
    let index = |text: &str| parse_choice(text, &["0", "1", "2"], |word| word);
    let filter = PostbackFilter {
        protocol: parameters.optional("protocol", protocol),
        signature: parameters.optional("signature", signature),
        counted: parameters.optional("counted", parse_bool),
        ad_network_id: parameters.renamed("adNetworkId", "adNetwork", ad_network_id),
        source_identifier: parameters.optional("sourceIdentifier", source_identifier),
        sequence_index: parameters
            .optional("sequenceIndex", index)
            .and_then(|word| word.parse().ok()),
        did_win: parameters.optional("didWin", parse_bool),
        conversion_type: parameters.optional("conversionType", conversion_type),
        from: None,
        until: None,
    };
    let filters = PostbacksQuery {
        filter,
        days: DayFilter::read(parameters),
        timezone: parameters.optional("timezone", Timezone::parse),
    };
    (filters, PageQuery::read(parameters))
}

/// Serializes app and filters for the cursor, which is valid only for the same ones.
fn narrowed_by(caller: &Caller<AppsRead>, app: AppId, filter: &PostbackFilter) -> String {
    serde_json::json!([
        app.to_string(),
        caller.authorized.environment().as_str(),
        filter.protocol.map(Protocol::as_str),
        filter.signature.map(Signature::as_str),
        filter.counted,
        filter.ad_network_id,
        filter.source_identifier,
        filter.sequence_index,
        filter.did_win,
        filter.conversion_type.map(ConversionType::as_str),
        filter.from.map(Timestamp::as_millis),
        filter.until.map(Timestamp::as_millis)
    ])
    .to_string()
}

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/skan/postbacks", tag = "Conversion value",
    operation_id = "listPostbacks",
    summary = "List postbacks",
    description = "SKAdNetwork and AdAttributionKit postbacks, newest first by arrival, with the \
                   decoded meaning of each value. Postbacks with an invalid signature are listed \
                   but never count. Postbacks are live data, so a test key gets an empty list. \
                   Requires `apps:read`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("protocol" = inline(Option<crate::choices::ProtocolChoice>), Query,
            description = "Filter by framework."),
        ("signature" = inline(Option<crate::choices::SignatureChoice>), Query,
            description = "Filter by the result of verifying the signature."),
        ("counted" = Option<bool>, Query, description = "Filter by whether a postback counts."),
        ("adNetworkId" = Option<String>, Query,
            description = "Filter by ad network id, case-insensitive. The former name `adNetwork` \
                           still works."),
        ("sourceIdentifier" = Option<String>, Query,
            description = "Filter by the last 2 to 4 digits of the source identifier: `39` finds \
                           39, 239 and 5239."),
        ("sequenceIndex" = Option<i64>, Query,
            description = "Filter by window.", minimum = 0, maximum = 2),
        ("didWin" = Option<bool>, Query,
            description = "Filter by won (`true`) or lost (`false`) conversions."),
        ("conversionType" = inline(Option<crate::choices::ConversionTypeChoice>), Query,
            description = "Filter by conversion type."),
        ("from" = Option<String>, Query,
            description = "First day, by time of arrival, such as `2026-01-01`."),
        ("to" = Option<String>, Query, description = "Last day, inclusive."),
        ("timezone" = Option<String>, Query,
            description = "Time zone for day boundaries. Default: the app's time zone."),
        ("limit" = Option<i64>, Query,
            description = "Items per page. Default: 50.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "`meta.cursor` from the previous page."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY, [Code::AppNotFound]]))),
    responses((status = 200, description = "A page of postbacks.",
        body = inline(PostbackListEnvelope),
        example = json!({"data": [example()], "meta": {"hasMore": false, "cursor": null}})))
)]
pub(crate) async fn list(
    caller: ReportCaller<AppsRead>,
    ids: PathIds,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let (filters, page) = query.read(read)?;
    let app = ids.app()?;
    let mut filter = filters.filter;
    if !filters.days.is_empty() {
        let reader = caller.authorized.analytics_access();
        let zone = match filters.timezone {
            Some(zone) => zone,
            None => state.store.app_timezone(&reader, app).await?,
        };
        (filter.from, filter.until) = filters.days.timestamps(&zone);
    }
    let scope = ListScope {
        list: "postbacks",
        organization: caller.authorized.organization(),
        filters: narrowed_by(&caller, app, &filter),
    };
    let request = page.open(&state, &scope)?;
    let found = state
        .store
        .postbacks(&caller.authorized, app, filter, request);
    let PostbackPage {
        page,
        versions,
        accept_test_signals,
    } = found.await?;
    Ok(List::of(
        page,
        &state,
        &scope,
        |stored| *stored.id.as_bytes(),
        |stored| PostbackOut::of(stored, &versions, accept_test_signals),
    ))
}
