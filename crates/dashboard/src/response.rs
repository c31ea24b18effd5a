//! A template as an answer, with the headers that every page has.

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// Nothing but files of our own, no frame around us, no form that leads elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      img-src 'self' data:; connect-src 'self'; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";

/// A page. It is kept by nobody, and nobody hears from it where its reader came from: the addresses of
/// these pages are secrets, and one of them shows a key.
pub(crate) fn page(status: StatusCode, template: &impl Template) -> Response {
    let text = match template.render() {
        Ok(text) => text,
        Err(error) => {
            tracing::error!(%error, "a page cannot be written");
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
    };
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
    ]
    .map(|(name, value)| (name, HeaderValue::from_static(value)));
    (status, headers, text).into_response()
}

/// A page of somebody who is signed in. Its forms must be known for ours: where browsers do not say so by
/// themselves, they say it in `Origin`, which `no-referrer` would make them hide.
pub(crate) fn app_page(
    status: StatusCode,
    template: &impl Template,
    is_trustworthy: bool,
) -> Response {
    let mut response = page(status, template);
    if !is_trustworthy {
        let policy = HeaderValue::from_static("same-origin");
        response
            .headers_mut()
            .insert(header::REFERRER_POLICY, policy);
    }
    response
}

/// To another page, after a form.
pub(crate) fn see_other(path: &str) -> Response {
    let headers = [
        (header::LOCATION, path),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Template)]
    #[template(source = "{{ text }}", ext = "html")]
    struct Shown<'a> {
        text: &'a str,
    }

    struct Broken;

    impl askama::FastWritable for Broken {
        fn write_into(
            &self,
            _: &mut dyn std::fmt::Write,
            _: &dyn askama::Values,
        ) -> askama::Result<()> {
            Err(askama::Error::Fmt)
        }
    }

    impl std::fmt::Display for Broken {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            Err(std::fmt::Error)
        }
    }

    #[derive(Template)]
    #[template(source = "{{ part }}", ext = "html")]
    struct Unwritable {
        part: Broken,
    }

    #[tokio::test]
    async fn what_a_template_is_given_is_text() {
        let response = page(StatusCode::OK, &Shown { text: "<b>\"&'" });
        let bytes = axum::body::to_bytes(response.into_body(), 1_000).await;
        assert_eq!(bytes.unwrap(), "&#60;b&#62;&#34;&#38;&#39;");
    }

    #[test]
    fn a_page_that_cannot_be_written_is_a_bug_of_ours() {
        let response = page(StatusCode::OK, &Unwritable { part: Broken });
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    }
}
