//! The landing page's embedded stylesheet and script.
//!
//! Their URLs contain a part of the content's digest, so browsers may cache them forever.

use axum::http::{HeaderName, HeaderValue, header};
use axum::response::IntoResponse;
use std::sync::LazyLock;
use tributary_domain::vocabulary::digest::{Digest, hex};

/// `GET /g/page.css`.
pub(super) const STYLE_PATH: &str = "/g/page.css";
/// `GET /g/page.js`.
pub(super) const SCRIPT_PATH: &str = "/g/page.js";

const STYLE: &str = include_str!("../../static/page.css");
const SCRIPT: &str = include_str!("../../static/page.js");

/// Number of digest bytes in the URL.
const VERSION_BYTES: usize = 8;

/// URL of the stylesheet.
pub(super) static STYLE_URL: LazyLock<String> = LazyLock::new(|| url(STYLE_PATH, STYLE));
/// URL of the script.
pub(super) static SCRIPT_URL: LazyLock<String> = LazyLock::new(|| url(SCRIPT_PATH, SCRIPT));

fn url(path: &str, content: &str) -> String {
    let digest = Digest::of(content.as_bytes());
    format!("{path}?v={}", hex(&digest.as_bytes()[..VERSION_BYTES]))
}

fn headers(content_type: &'static str) -> [(HeaderName, HeaderValue); 2] {
    [
        (header::CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (
            header::CACHE_CONTROL,
            HeaderValue::from_static("public, max-age=31536000, immutable"),
        ),
    ]
}

pub(super) async fn style() -> impl IntoResponse {
    (headers("text/css; charset=utf-8"), STYLE)
}

pub(super) async fn script() -> impl IntoResponse {
    (headers("text/javascript; charset=utf-8"), SCRIPT)
}
