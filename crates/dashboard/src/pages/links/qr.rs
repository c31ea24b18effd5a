//! `GET /apps/{app}/links/{link}/qr.svg` and `qr.png` — downloads a QR code of the link's URL.

use super::update::load;
use crate::access::PageContext;
use crate::failure::Failure;
use crate::state::DashboardHandles;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use tributary_domain::access::AppsRead;
use tributary_domain::link::qr::{QrCode, QrIcon};

/// Downloads the code as SVG.
pub(crate) async fn svg(
    State(handles): State<DashboardHandles>,
    context: PageContext<AppsRead>,
) -> Result<Response, Failure> {
    let (code, name) = code(&handles, &context).await?;
    Ok(file("image/svg+xml", &format!("{name}.svg"), code.svg()))
}

/// Downloads the code as PNG.
pub(crate) async fn png(
    State(handles): State<DashboardHandles>,
    context: PageContext<AppsRead>,
) -> Result<Response, Failure> {
    let (code, name) = code(&handles, &context).await?;
    Ok(file("image/png", &format!("{name}.png"), code.png()))
}

/// Returns the code, and the slug as the file's name.
async fn code(
    handles: &DashboardHandles,
    context: &PageContext<AppsRead>,
) -> Result<(QrCode, String), Failure> {
    let (app, link) = load(handles, context, &context.authorized).await?;
    let icon = match context.query.get("logo") {
        Some("false") => QrIcon::Hidden,
        _ => QrIcon::Shown,
    };
    let code = QrCode::for_print(&link.url(&app.link_base(&handles.base_url)), icon);
    Ok((
        code.ok_or(Failure::NotFound)?,
        link.slug.as_str().to_owned(),
    ))
}

fn file(content_type: &str, name: &str, body: impl IntoResponse) -> Response {
    let disposition = format!("attachment; filename=\"{name}\"");
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CONTENT_DISPOSITION, &disposition),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, body).into_response()
}
