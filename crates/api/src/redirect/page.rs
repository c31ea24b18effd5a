//! The pages of these doors, with the headers that each has.

use super::{ACCEPT_CH, NO_STORE};
use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tributary_domain::link::qr::QrCode;

/// Nothing but files of our own, and nothing around us.
const LANDING_POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; \
                              connect-src 'self'; form-action 'none'; base-uri 'none'; \
                              frame-ancestors 'none'";
/// A page that only says something needs no script.
const NOTICE_POLICY: &str = "default-src 'none'; style-src 'self'; form-action 'none'; \
                             base-uri 'none'; frame-ancestors 'none'";

/// Seconds after which a database that was away may be back.
const RETRY_SECONDS: u64 = 5;

/// The way to one store.
#[derive(Debug)]
pub(super) struct StoreButton {
    /// Where it leads.
    pub(super) url: String,
    /// What it says.
    pub(super) label: &'static str,
    /// Whether it is the store of the device that asks.
    pub(super) is_first: bool,
}

/// The page of an app.
#[derive(Debug, Template)]
#[template(path = "landing.html")]
pub(super) struct Landing<'a> {
    /// What people call the app.
    pub(super) app: &'a str,
    /// The stores that have it.
    pub(super) stores: Vec<StoreButton>,
    /// Where everybody else is sent.
    pub(super) website: Option<&'a str>,
    /// This page's address, for a phone.
    pub(super) code: Option<QrCode>,
    /// Where the script posts what it learns, and the app it is about.
    pub(super) hints: Option<(String, String)>,
}

impl Landing<'_> {
    /// What stands in for the app's icon, which we do not have.
    fn initial(&self) -> String {
        let first = self.app.chars().next();
        first.map_or_else(String::new, |letter| letter.to_uppercase().collect())
    }
}

/// A page that says why there is no other.
#[derive(Debug, Template)]
#[template(path = "notice.html")]
struct Notice {
    title: &'static str,
    text: &'static str,
}

/// The page of an app.
pub(super) fn landing(landing: &Landing<'_>) -> Response {
    let page = page(StatusCode::OK, LANDING_POLICY, landing);
    ([ACCEPT_CH], page).into_response()
}

/// The answer to a link that is not there: unknown, archived, switched off, or of the other kind. Nobody
/// learns which.
pub(super) fn no_such_link() -> Response {
    let notice = Notice {
        title: "This link leads nowhere",
        text: "It may have been mistyped, or it is no longer in use.",
    };
    page(StatusCode::NOT_FOUND, NOTICE_POLICY, &notice)
}

/// The answer when nobody can say where a link leads.
pub(super) fn unavailable() -> Response {
    let notice = Notice {
        title: "Please try again in a moment",
        text: "We cannot look this link up right now.",
    };
    let page = page(StatusCode::SERVICE_UNAVAILABLE, NOTICE_POLICY, &notice);
    (
        [(header::RETRY_AFTER, HeaderValue::from(RETRY_SECONDS))],
        page,
    )
        .into_response()
}

/// The answer when we made a mistake.
pub(super) fn internal_error() -> Response {
    let notice = Notice {
        title: "Something went wrong",
        text: "This link cannot be opened right now.",
    };
    page(StatusCode::INTERNAL_SERVER_ERROR, NOTICE_POLICY, &notice)
}

fn page(status: StatusCode, policy: &'static str, template: &impl Template) -> Response {
    let text = match template.render() {
        Ok(text) => text,
        Err(error) => {
            tracing::error!(%error, "a page cannot be written");
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

    fn of(app: &str) -> Landing<'_> {
        Landing {
            app,
            stores: vec![StoreButton {
                url: "https://example.com/?a=1&b=\"2".to_owned(),
                label: "Get it for iPhone",
                is_first: true,
            }],
            website: Some("https://example.com/?c=<d>"),
            code: QrCode::of("https://t.example.com/g/spring"),
            hints: Some(("/g/clk_1/hints".to_owned(), "app_1".to_owned())),
        }
    }

    #[tokio::test]
    async fn whatever_a_page_is_given_is_text() {
        let page = text(landing(&of("<script>alert('x')</script>\""))).await;
        assert!(page.contains("&#60;script&#62;alert(&#39;x&#39;)&#60;/script&#62;&#34;"));
        assert!(page.contains("href=\"https://example.com/?a=1&#38;b=&#34;2\""));
        assert!(page.contains("href=\"https://example.com/?c=&#60;d&#62;\""));
        assert_eq!(page.matches("<script").count(), 1, "our own file");
    }

    #[tokio::test]
    async fn no_page_asks_for_what_its_policy_forbids() {
        for response in [
            landing(&of("Runner")),
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
    async fn a_page_without_anything_says_so() {
        let empty = Landing {
            stores: Vec::new(),
            website: None,
            hints: None,
            ..of("läufer")
        };
        let page = text(landing(&empty)).await;
        assert!(
            page.contains("not in the stores yet") && page.contains(">L</p>"),
            "{page}"
        );
        assert!(!page.contains("data-hints") && !page.contains("<svg"));
    }
}
