//! `GET /api/v1/audit-log` — lists changes with their actor, time and origin.

use crate::actor::ActorOut;
use crate::caller::ReportCaller;
use crate::error::ApiError;
use crate::openapi::errors::{API_KEY, PAGE_QUERY};
use crate::page::{List, PageQuery};
use crate::query::QueryString;
use crate::state::ApiState;
use crate::time_text::rfc3339;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tributary_domain::access::resource::OrganizationRead;
use tributary_domain::audit::{AuditEntry, FieldChange};
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::ListScope;
use utoipa::ToSchema;

/// One change.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "AuditEntry")]
struct EntryOut {
    id: String,
    #[schema(format = DateTime)]
    at: String,
    actor: ActorOut,
    /// Action, such as `app.created` or `link.updated`.
    action: &'static str,
    app_id: Option<String>,
    /// The changed object: its id, or the network's identifier.
    target: String,
    /// Changed fields. For a secret, the values only say whether it is set.
    changes: Vec<ChangeOut>,
    /// Client IP address.
    address: Option<String>,
    request_id: Option<String>,
}

/// Old and new value of a field.
#[derive(Debug, Serialize, ToSchema)]
struct ChangeOut {
    field: String,
    before: Option<String>,
    after: Option<String>,
}

impl From<AuditEntry> for EntryOut {
    fn from(entry: AuditEntry) -> Self {
        let change = |change: FieldChange| ChangeOut {
            field: change.field,
            before: change.before,
            after: change.after,
        };
        Self {
            id: entry.id.to_string(),
            at: rfc3339(entry.at),
            actor: entry.actor.into(),
            action: entry.action.as_str(),
            app_id: entry.app.map(|app| app.to_string()),
            target: entry.target,
            changes: entry.changes.into_iter().map(change).collect(),
            address: entry.address,
            request_id: entry.request_id,
        }
    }
}

type EntryListEnvelope = List<EntryOut>;

fn app_id(text: &str) -> Result<AppId, Problem> {
    AppId::parse(text)
        .map_err(|_| Problem::new(FaultCode::InvalidFormat, "Must be an app id (app_…)."))
}

#[utoipa::path(
    get, path = "/api/v1/audit-log", tag = "Audit log", operation_id = "listAuditLog",
    summary = "List the audit log",
    description = "All changes, newest first, with the actor (key, user or command line), time and \
                   client address.",
    params(
        ("appId" = Option<String>, Query, description = "Filter by app id."),
        ("limit" = Option<i64>, Query,
            description = "Items per page. Default: 50.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "`meta.cursor` from the previous page."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY]))),
    responses((status = 200, description = "A page of the log.", body = inline(EntryListEnvelope),
        example = json!({
            "data": [{
                "id": "aud_01k9z3v7q8e4r9m2x5c6b7n8d2",
                "at": "2026-01-01T00:00:00.000Z",
                "actor": {"kind": "key", "id": "key_01k9z3v7q8e4r9m2x5c6b7n8d3"},
                "action": "app.updated",
                "appId": "app_01k9z3v7q8e4r9m2x5c6b7n8d0",
                "target": "app_01k9z3v7q8e4r9m2x5c6b7n8d0",
                "changes": [{"field": "webEvents.enabled", "before": "false", "after": "true"}],
                "address": "203.0.113.9",
                "requestId": "req_6f1ce0"
            }],
            "meta": {"hasMore": false, "cursor": null}
        })))
)]
pub(crate) async fn list(
    caller: ReportCaller<OrganizationRead>,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let (app, page) = query.read(|parameters| {
        (
            parameters.optional("appId", app_id),
            PageQuery::read(parameters),
        )
    })?;
    let scope = ListScope {
        list: "audit-log",
        organization: caller.authorized.organization(),
        filters: app.map(|app| app.to_string()).unwrap_or_default(),
    };
    let request = page.open(&state, &scope)?;
    let page = state
        .store
        .audit_log(&caller.authorized, app, request)
        .await?;
    Ok(List::of(
        page,
        &state,
        &scope,
        |entry| *entry.id.as_bytes(),
        EntryOut::from,
    ))
}
