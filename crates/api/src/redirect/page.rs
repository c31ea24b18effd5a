//! HTML pages for tracking links, and their headers.

use super::{ACCEPT_CH, NO_STORE};
use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tributary_domain::link::qr::QrCode;

/// Content security policy for the landing page. Allows only our own files and forbids framing.
const LANDING_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; \
                              connect-src 'self'; form-action 'none'; base-uri 'none'; \
                              frame-ancestors 'none'";
/// Content security policy for pages without scripts.
const NOTICE_POLICY: &str = "default-src 'none'; style-src 'self'; form-action 'none'; \
                             base-uri 'none'; frame-ancestors 'none'";

/// `Retry-After` in seconds while the database is unavailable.
const RETRY_SECONDS: u64 = 5;

/// A button that links to an app store.
#[derive(Debug)]
pub(super) struct StoreButton {
    /// URL of the store page.
    pub(super) url: String,
    /// The button's label.
    pub(super) label: &'static str,
    /// Whether this is the store for the visitor's device.
    pub(super) is_first: bool,
}

/// Landing page of an app.
#[derive(Debug, Template)]
#[template(path = "landing.html")]
pub(super) struct Landing<'a> {
    /// Name of the app.
    pub(super) app: &'a str,
    /// Buttons for the stores that offer the app.
    pub(super) stores: Vec<StoreButton>,
    /// Website for visitors whose device has no app store.
    pub(super) website: Option<&'a str>,
    /// QR code for this page's URL.
    pub(super) code: Option<QrCode>,
    /// URL to which the script posts hints, and the app id.
    pub(super) hints: Option<(String, String)>,
}

impl Landing<'_> {
    /// Returns the first letter of the name, shown in place of an icon.
    fn initial(&self) -> String {
        let first = self.app.chars().next();
        first.map_or_else(String::new, |letter| letter.to_uppercase().collect())
    }
}

/// Error page.
#[derive(Debug, Template)]
#[template(path = "notice.html")]
struct Notice {
    title: &'static str,
    text: &'static str,
}

/// Renders the landing page of an app.
pub(super) fn landing(landing: &Landing<'_>) -> Response {
    let page = page(StatusCode::OK, LANDING_POLICY, landing);
    ([ACCEPT_CH], page).into_response()
}

/// Renders the 404 page for a link that is unknown, archived or inactive, or whose kind does not
/// match the path. The page does not say which.
pub(super) fn no_such_link() -> Response {
    let notice = Notice {
        title: "Link not found",
        text: "Check the address for typos. The link may also have been removed.",
    };
    page(StatusCode::NOT_FOUND, NOTICE_POLICY, &notice)
}

/// Renders the 503 page.
pub(super) fn unavailable() -> Response {
    let notice = Notice {
        title: "Temporarily unavailable",
        text: "We can’t open this link right now. Please try again in a moment.",
    };
    let page = page(StatusCode::SERVICE_UNAVAILABLE, NOTICE_POLICY, &notice);
    (
        [(header::RETRY_AFTER, HeaderValue::from(RETRY_SECONDS))],
        page,
    )
        .into_response()
}

/// Renders the 500 page.
pub(super) fn internal_error() -> Response {
    let notice = Notice {
        title: "Something went wrong",
        text: "We couldn’t open this link. Please try again later.",
    };
    page(StatusCode::INTERNAL_SERVER_ERROR, NOTICE_POLICY, &notice)
}

fn page(status: StatusCode, policy: &'static str, template: &impl Template) -> Response {
    let text = match template.render() {
        Ok(text) => text,
        Err(error) => {
            tracing::error!(%error, "failed to render page");
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
    };
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(policy),
        ),
        NO_STORE,
    ];
    (status, headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn text(response: Response) -> String {
        let bytes = axum::body::to_bytes(response.into_body(), 100_000).await;
        String::from_utf8(bytes.unwrap().to_vec()).unwrap()
    }

    fn landing_of(app: &str) -> Landing<'_> {
        Landing {
            app,
            stores: vec![StoreButton {
                url: "https://example.com/?a=1&b=\"2".to_owned(),
                label: "Download for iPhone",
                is_first: true,
            }],
            website: Some("https://example.com/?c=<d>"),
            code: QrCode::of("https://t.example.com/g/spring"),
            hints: Some(("/g/clk_1/hints".to_owned(), "app_1".to_owned())),
        }
    }

    #[tokio::test]
    async fn all_values_are_escaped() {
        let page = text(landing(&landing_of("<script>alert('x')</script>\""))).await;
        assert!(page.contains("&#60;script&#62;alert(&#39;x&#39;)&#60;/script&#62;&#34;"));
        assert!(page.contains("href=\"https://example.com/?a=1&#38;b=&#34;2\""));
        assert!(page.contains("href=\"https://example.com/?c=&#60;d&#62;\""));
        assert_eq!(page.matches("<script").count(), 1, "our own file");
    }

    #[tokio::test]
    async fn every_page_respects_its_content_security_policy() {
        for response in [
            landing(&landing_of("Runner")),
            no_such_link(),
            unavailable(),
            internal_error(),
        ] {
            let policy = response.headers()[header::CONTENT_SECURITY_POLICY].clone();
            let policy = policy.to_str().unwrap().to_owned();
            assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"));
            let page = text(response).await;
            for forbidden in [
                "<style",
                " style=",
                " onclick",
                " onload",
                "javascript:",
                "<img",
            ] {
                assert!(!page.contains(forbidden), "{forbidden} in {page}");
            }
            assert!(
                page.contains("<script") == policy.contains("script-src"),
                "{page}"
            );
            assert_eq!(
                page.matches("<script").count(),
                page.matches("<script src=\"/g/").count()
            );
        }
    }

    #[tokio::test]
    async fn a_landing_page_without_destinations_says_so() {
        let empty = Landing {
            stores: Vec::new(),
            website: None,
            hints: None,
            ..landing_of("läufer")
        };
        let page = text(landing(&empty)).await;
        assert!(
            page.contains("isn’t available yet") && page.contains(">L</p>"),
            "{page}"
        );
        assert!(!page.contains("data-hints") && !page.contains("<svg"));
    }
}
