//! `GET /api/v1/apps/{appId}/skan/versions` — lists the versions of the configuration.

use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, PAGE_QUERY};
use crate::page::{List, PageQuery};
use crate::path::PathIds;
use crate::query::QueryString;
use crate::report::{RowPage, row_key};
use crate::state::ApiState;
use crate::time_text::rfc3339;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tributary_domain::access::AppsRead;
use tributary_domain::skan::decode::ambiguous_until;
use tributary_domain::vocabulary::page::ListScope;
use tributary_domain::vocabulary::time::Timestamp;
use utoipa::ToSchema;

/// A version of the configuration.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "ConversionValueVersion")]
struct VersionOut {
    version: i64,
    /// Time from which the version applies.
    #[schema(format = DateTime)]
    applies_from: String,
    /// Until this time, postbacks may still contain values from the previous version. Null for the
    /// first version.
    #[schema(format = DateTime)]
    ambiguous_until: Option<String>,
}

impl From<(i64, Timestamp)> for VersionOut {
    fn from((version, applies_from): (i64, Timestamp)) -> Self {
        Self {
            version,
            applies_from: rfc3339(applies_from),
            ambiguous_until: (version > 1).then(|| rfc3339(ambiguous_until(applies_from))),
        }
    }
}

type VersionListEnvelope = List<VersionOut>;

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/skan/versions", tag = "Conversion value",
    operation_id = "listSkanVersions",
    summary = "List versions of the conversion-value configuration",
    description = "All versions, newest first. Postbacks that arrive within 48 days of a change \
                   may contain values from the previous version. Requires `apps:read`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("limit" = Option<i64>, Query,
            description = "Items per page. Default: 50.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "`meta.cursor` from the previous page."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY, [Code::AppNotFound]]))),
    responses((status = 200, description = "A page of versions.",
        body = inline(VersionListEnvelope), example = json!({
        "data": [
            {"version": 2, "appliesFrom": "2026-01-01T00:00:00.000Z", "ambiguousUntil": "2026-02-18T00:00:00.000Z"},
            {"version": 1, "appliesFrom": "2025-11-01T00:00:00.000Z", "ambiguousUntil": null},
        ],
        "meta": {"hasMore": false, "cursor": null},
    })))
)]
pub(crate) async fn versions(
    caller: Caller<AppsRead>,
    ids: PathIds,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let page = query.read(PageQuery::read)?;
    let app = ids.app()?;
    let scope = ListScope {
        list: "skan_versions",
        organization: caller.authorized.organization(),
        filters: app.to_string(),
    };
    let versions = state.store.skan_versions(&caller.authorized, app).await?;
    let row = |(version, from): (i64, Timestamp)| {
        let key = row_key([version.to_string().as_str()]);
        (key, VersionOut::from((version, from)))
    };
    let newest_first = versions.into_iter().rev().map(row).collect();
    Ok(RowPage::of(newest_first, &page, &state, &scope)?.into_list())
}
