//! `GET /api/v1/apps/{appId}/links/{linkId}/qr.svg` and `qr.png` — a QR code of the link's URL.

use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::openapi::errors::{API_KEY, QUERY};
use crate::path::PathIds;
use crate::query::{QueryString, parse_bool};
use crate::state::ApiState;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use tributary_domain::access::AppsRead;
use tributary_domain::link::qr::{QrCode, QrIcon};
use tributary_domain::refusal::Refusal;

async fn code(
    caller: &Caller<AppsRead>,
    ids: &PathIds,
    query: &QueryString,
    state: &ApiState,
) -> Result<QrCode, ApiError> {
    let logo = query.read(|parameters| parameters.optional("logo", parse_bool))?;
    let app = state.store.app(&caller.authorized, ids.app()?).await?;
    let link = state
        .store
        .link(&caller.authorized, app.id, ids.link()?)
        .await?;
    let icon = match logo {
        Some(false) => QrIcon::Hidden,
        Some(true) | None => QrIcon::Shown,
    };
    let code = QrCode::for_print(&link.url(&app.link_base(&state.base_url)), icon);
    // A link's URL is much shorter than the longest text of a QR code.
    code.ok_or_else(|| ApiError::from(Refusal::LinkNotFound))
}

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/links/{linkId}/qr.svg", tag = "Links",
    operation_id = "getLinkQrSvg", summary = "Get a link's QR code as SVG",
    description = "A QR code of the link's `url` with the highest error correction. Requires \
                   `apps:read`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("linkId" = String, Path, description = "Link id."),
        ("logo" = Option<bool>, Query,
            description = "Whether the product's icon is in the middle. Default: true."),
    ),
    extensions(("x-errors" = json!([API_KEY, QUERY, [Code::AppNotFound, Code::LinkNotFound]]))),
    responses((status = 200, description = "The image.", body = String,
        content_type = "image/svg+xml"))
)]
pub(crate) async fn svg(
    caller: Caller<AppsRead>,
    ids: PathIds,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let code = code(&caller, &ids, &query, &state).await?;
    Ok(([(header::CONTENT_TYPE, "image/svg+xml")], code.svg()))
}

#[utoipa::path(
    get, path = "/api/v1/apps/{appId}/links/{linkId}/qr.png", tag = "Links",
    operation_id = "getLinkQrPng", summary = "Get a link's QR code as PNG",
    description = "A QR code of the link's `url` with the highest error correction, at least \
                   1,024 pixels wide. Requires `apps:read`.",
    params(
        ("appId" = String, Path, description = "App id."),
        ("linkId" = String, Path, description = "Link id."),
        ("logo" = Option<bool>, Query,
            description = "Whether the product's icon is in the middle. Default: true."),
    ),
    extensions(("x-errors" = json!([API_KEY, QUERY, [Code::AppNotFound, Code::LinkNotFound]]))),
    responses((status = 200, description = "The image.", body = String,
        content_type = "image/png"))
)]
pub(crate) async fn png(
    caller: Caller<AppsRead>,
    ids: PathIds,
    query: QueryString,
    State(state): State<ApiState>,
) -> Result<impl IntoResponse, ApiError> {
    let code = code(&caller, &ids, &query, &state).await?;
    Ok(([(header::CONTENT_TYPE, "image/png")], code.png()))
}
