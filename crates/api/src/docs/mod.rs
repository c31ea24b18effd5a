//! `/api/v1/docs`: interactive API reference. All files are embedded, so it works offline.

use crate::error::{ApiError, Code};
use crate::state::ApiState;
use axum::Router;
use axum::extract::RawPathParams;
use axum::extract::rejection::RawPathParamsRejection;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::sync::Arc;
use utoipa_swagger_ui::Config;

/// Content security policy. Swagger UI only needs its own files, and `data:` images for icons.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      img-src 'self' data:; connect-src 'self'; font-src 'self'; \
                      form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

pub(crate) fn router() -> Router<ApiState> {
    Router::new()
        .route("/api/v1/docs", get(index))
        .route("/api/v1/docs/", get(index))
        .route("/api/v1/docs/{file}", get(file))
}

fn page(content_type: &'static str, body: impl IntoResponse) -> Response {
    let headers: [(HeaderName, HeaderValue); 2] = [
        (header::CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(POLICY),
        ),
    ];
    (headers, body).into_response()
}

async fn index() -> Response {
    page("text/html; charset=utf-8", include_str!("index.html"))
}

/// Serves the three files that the page loads.
async fn file(params: Result<RawPathParams, RawPathParamsRejection>) -> Result<Response, ApiError> {
    let params = params.ok();
    let name = params
        .as_ref()
        .and_then(|params| params.iter().next())
        .map_or("", |(_, name)| name);
    let content_type = match name {
        "reference.js" => {
            return Ok(page(
                "text/javascript; charset=utf-8",
                include_str!("reference.js"),
            ));
        }
        "swagger-ui-bundle.js" => "text/javascript; charset=utf-8",
        "swagger-ui.css" => "text/css; charset=utf-8",
        _ => return Err(ApiError::new(Code::NotFound, "File not found.")),
    };
    let found = utoipa_swagger_ui::serve(name, Arc::new(Config::from("/openapi.yaml")));
    match found {
        Ok(Some(file)) => Ok(page(content_type, file.bytes.into_owned())),
        Ok(None) => Err(ApiError::new(Code::NotFound, "File not found.")),
        Err(error) => {
            tracing::error!(%error, "failed to serve API reference file");
            Err(ApiError::internal())
        }
    }
}
