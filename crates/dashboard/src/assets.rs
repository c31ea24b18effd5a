//! `GET /static/{file}` — static files, embedded in the binary.
//!
//! Pages use a URL that includes part of the file's digest, so browsers may cache the file forever.
//! If the digest is missing or belongs to another version (during a rolling update), the response
//! has the current content and may be cached for a minute only.

use crate::failure::Failure;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use std::sync::OnceLock;
use tributary_domain::vocabulary::digest::{Digest, hex};

/// The style sheet.
pub(crate) static STYLE: Asset = Asset::new(
    "dashboard.css",
    "text/css; charset=utf-8",
    include_bytes!("../static/dashboard.css"),
);
/// The dashboard's own script.
pub(crate) static SCRIPT: Asset = Asset::new(
    "dashboard.js",
    "text/javascript; charset=utf-8",
    include_bytes!("../static/dashboard.js"),
);
/// Drafts and errors of forms.
pub(crate) static FORMS: Asset = Asset::new(
    "forms.js",
    "text/javascript; charset=utf-8",
    include_bytes!("../static/forms.js"),
);
/// Command palette, shortcuts and tables as cards.
pub(crate) static PALETTE: Asset = Asset::new(
    "palette.js",
    "text/javascript; charset=utf-8",
    include_bytes!("../static/palette.js"),
);
/// Passkeys.
pub(crate) static PASSKEYS: Asset = Asset::new(
    "passkeys.js",
    "text/javascript; charset=utf-8",
    include_bytes!("../static/passkeys.js"),
);
/// htmx (<https://htmx.org>, 0BSD): swaps fragments of a page.
pub(crate) static HTMX: Asset = Asset::new(
    "htmx.min.js",
    "text/javascript; charset=utf-8",
    include_bytes!("../static/htmx.min.js"),
);
/// The logo.
pub(crate) static ICON: Asset = Asset::new(
    "icon.svg",
    "image/svg+xml",
    include_bytes!("../static/icon.svg"),
);

static ALL: [&Asset; 7] = [&STYLE, &SCRIPT, &FORMS, &PALETTE, &PASSKEYS, &HTMX, &ICON];

const CACHE_IMMUTABLE: &str = "public, max-age=31536000, immutable";
const CACHE_ONE_MINUTE: &str = "public, max-age=60";

/// Number of the digest's bytes in the URL.
const VERSION_BYTES: usize = 8;

/// A static file.
pub(crate) struct Asset {
    name: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
    query: OnceLock<String>,
}

impl Asset {
    const fn new(name: &'static str, content_type: &'static str, bytes: &'static [u8]) -> Self {
        Self {
            name,
            content_type,
            bytes,
            query: OnceLock::new(),
        }
    }

    fn query(&self) -> &str {
        self.query.get_or_init(|| {
            let digest = Digest::of(self.bytes);
            format!("v={}", hex(&digest.as_bytes()[..VERSION_BYTES]))
        })
    }

    /// Returns the URL with the digest.
    pub(crate) fn url(&self) -> String {
        format!("/static/{}?{}", self.name, self.query())
    }
}

/// Sends a file.
pub(crate) async fn serve(
    name: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let Path(name) = name.map_err(|_| Failure::NoSuchFile)?;
    let asset = ALL
        .into_iter()
        .find(|asset| asset.name == name)
        .ok_or(Failure::NoSuchFile)?;
    let cache_control = if query.as_deref() == Some(asset.query()) {
        CACHE_IMMUTABLE
    } else {
        CACHE_ONE_MINUTE
    };
    let headers = [
        (header::CONTENT_TYPE, asset.content_type),
        (header::CACHE_CONTROL, cache_control),
    ]
    .map(|(name, value)| (name, HeaderValue::from_static(value)));
    Ok((headers, asset.bytes).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestDashboard;
    use axum::http::StatusCode;
    use rstest::rstest;

    #[rstest]
    #[case::style(&STYLE, "text/css; charset=utf-8")]
    #[case::script(&SCRIPT, "text/javascript; charset=utf-8")]
    #[case::forms(&FORMS, "text/javascript; charset=utf-8")]
    #[case::palette(&PALETTE, "text/javascript; charset=utf-8")]
    #[case::htmx(&HTMX, "text/javascript; charset=utf-8")]
    #[case::icon(&ICON, "image/svg+xml")]
    #[tokio::test]
    async fn a_file_with_its_digest_is_cached_forever(
        #[case] asset: &'static Asset,
        #[case] content_type: &str,
    ) {
        let dashboard = TestDashboard::start().await;
        let response = dashboard.get(&asset.url()).await;
        assert_eq!(response.status, StatusCode::OK);
        assert_eq!(response.header("content-type"), content_type);
        assert_eq!(response.header("cache-control"), CACHE_IMMUTABLE);
        assert_eq!(response.text.as_bytes(), asset.bytes);
    }

    #[rstest]
    #[case::no_digest("/static/dashboard.css")]
    #[case::digest_of_another_version("/static/dashboard.css?v=0000000000000000")]
    #[tokio::test]
    async fn a_file_without_its_digest_is_cached_for_a_minute(#[case] path: &str) {
        let response = TestDashboard::start().await.get(path).await;
        assert_eq!(response.status, StatusCode::OK);
        assert_eq!(response.header("cache-control"), CACHE_ONE_MINUTE);
    }

    #[rstest]
    #[case("/static/nothing.css")]
    #[case("/static/..%2fCargo.toml")]
    #[case("/static/%ff")]
    #[tokio::test]
    async fn unknown_files_are_not_found(#[case] path: &str) {
        let response = TestDashboard::start().await.get(path).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND);
    }
}
