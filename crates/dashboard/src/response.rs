//! Renders templates with the headers that all pages share.

use askama::Template;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use csv::{Terminator, WriterBuilder};
use tributary_domain::report::spreadsheet_field;

/// Allows only files from this origin, no framing, and no forms that post to other origins.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      img-src 'self' data:; connect-src 'self'; form-action 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";

/// Renders a page. Browsers do not cache it and send no referrer from it, because the URLs of setup
/// pages are secret and one page shows a key.
pub(crate) fn page(status: StatusCode, template: &impl Template) -> Response {
    let text = match template.render() {
        Ok(text) => text,
        Err(error) => {
            tracing::error!(%error, "failed to render page");
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

/// Renders a page with forms. If browsers send no `Sec-Fetch-Site` to this origin, the check for
/// cross-origin forms relies on the `Origin` header, which the referrer policy `no-referrer` would
/// hide. The page then uses `same-origin` instead.
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

/// Makes the browser request the same page again after these seconds. Not for answers to a form,
/// which the browser would send as a page request.
pub(crate) fn try_again_after(response: &mut Response, seconds: u64) {
    let seconds = HeaderValue::from(seconds);
    response.headers_mut().insert(header::REFRESH, seconds);
}

/// Returns a CSV file as a download. Texts that a spreadsheet would run as formulas are escaped.
pub(crate) fn csv_file<Field: AsRef<str>>(
    name: &str,
    heads: impl IntoIterator<Item = Field>,
    rows: impl Iterator<Item = impl IntoIterator<Item = String>>,
) -> Response {
    let mut file = WriterBuilder::new()
        .terminator(Terminator::CRLF)
        .from_writer(Vec::new());
    let heads = heads.into_iter();
    // Writing to memory cannot fail.
    let _infallible = file.write_record(heads.map(|head| head.as_ref().to_owned()));
    for row in rows {
        let fields = row.into_iter();
        let fields = fields.map(|text| spreadsheet_field(&text).into_owned());
        let _infallible = file.write_record(fields);
    }
    let disposition = format!("attachment; filename=\"{name}\"");
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
        (header::CONTENT_DISPOSITION, disposition.as_str()),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, file.into_inner().unwrap_or_default()).into_response()
}

/// Redirects to another page after a form (303).
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
    struct EscapingPage<'a> {
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
    async fn templates_escape_their_values() {
        let response = page(StatusCode::OK, &EscapingPage { text: "<b>\"&'" });
        let bytes = axum::body::to_bytes(response.into_body(), 1_000).await;
        assert_eq!(bytes.unwrap(), "&#60;b&#62;&#34;&#38;&#39;");
    }

    #[test]
    fn a_template_that_fails_to_render_is_an_internal_error() {
        let response = page(StatusCode::OK, &Unwritable { part: Broken });
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
    }
}
