//! `GET /api/v1/keys` — lists the organization's API keys.

use super::shape::{KeyListEnvelope, KeyOut, example};
use crate::caller::Caller;
use crate::error::ApiError;
use crate::openapi::errors::{API_KEY, PAGE_QUERY};
use crate::page::{List, PageQuery};
use crate::query::{QueryString, parse_bool};
use crate::state::ApiState;
use axum::extract::State;
use axum::response::IntoResponse;
use tributary_domain::access::resource::OrganizationRead;
use tributary_domain::vocabulary::page::ListScope;
use tributary_store::KeyFilter;

#[utoipa::path(
    get, path = "/api/v1/keys", tag = "Keys", operation_id = "listKeys",
    summary = "List keys",
    description = "Newest first, with revoked and expired keys, without the keys themselves. A test \
                   key sees test keys; a key that is limited to apps sees the keys that are limited \
                   to some of them. Requires `apps:read`.",
    params(
        ("valid" = Option<bool>, Query,
            description = "If `true`, revoked and expired keys are left out."),
        ("limit" = Option<i64>, Query,
            description = "Items per page. Default: 50.", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "`meta.cursor` from the previous page."),
    ),
    extensions(("x-errors" = json!([API_KEY, PAGE_QUERY]))),
    responses((status = 200, description = "A page of keys.", body = inline(KeyListEnvelope),
        example = json!({"data": [example()], "meta": {"hasMore": false, "cursor": null}})))
)]
pub(crate) async fn list(
    caller: Caller<OrganizationRead>,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let (valid, page) = query.read(|parameters| {
        let valid = parameters.optional("valid", parse_bool).unwrap_or(false);
        (valid, PageQuery::read(parameters))
    })?;
    let scope = ListScope {
        list: "keys",
        organization: caller.authorized.organization(),
        filters: valid.to_string(),
    };
    let request = page.open(&state, &scope)?;
    let filter = KeyFilter {
        valid_at: valid.then(|| state.runtime.now()),
        owner: None,
    };
    let page = state.store.key_page(&caller.authorized, filter, request);
    let (page, shape) = (page.await?, |key| KeyOut::of(key, &state));
    Ok(List::of(
        page,
        &state,
        &scope,
        |key| *key.id.as_bytes(),
        shape,
    ))
}
