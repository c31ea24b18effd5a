//! Receives a submitted form: checks content type, size and time.

use crate::failure::Failure;
use crate::state::DashboardHandles;
use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use http_body_util::{BodyExt, Limited};
use tributary_fields::Form;

/// Maximum form size: a year of ad costs by campaign and day, with room for percent-encoding.
pub(crate) const FORM_BYTES_MAX: usize = 1024 * 1024;

/// Receives a form.
pub(crate) async fn receive(
    headers: &HeaderMap,
    body: Body,
    handles: &DashboardHandles,
) -> Result<Form, Failure> {
    if !is_form(headers) {
        return Err(Failure::NotAForm);
    }
    match tokio::time::timeout(handles.body_timeout, collect(body)).await {
        Ok(form) => form,
        Err(_) => Err(Failure::TooSlow),
    }
}

impl FromRequest<DashboardHandles> for Form {
    type Rejection = Failure;

    async fn from_request(request: Request, handles: &DashboardHandles) -> Result<Self, Failure> {
        let (parts, body) = request.into_parts();
        receive(&parts.headers, body, handles).await
    }
}

fn is_form(headers: &HeaderMap) -> bool {
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next());
    content_type.is_some_and(|essence| {
        essence
            .trim()
            .eq_ignore_ascii_case("application/x-www-form-urlencoded")
    })
}

async fn collect(body: Body) -> Result<Form, Failure> {
    match Limited::new(body, FORM_BYTES_MAX).collect().await {
        Ok(collected) => Form::parse(&collected.to_bytes()).ok_or(Failure::TooLarge),
        // Also reached when the client disconnects; the response is then discarded.
        Err(_) => Err(Failure::TooLarge),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FORM, SAME_ORIGIN, TestDashboard};
    use axum::http::StatusCode;
    use rstest::rstest;

    #[rstest]
    #[case::no_type(None, StatusCode::UNSUPPORTED_MEDIA_TYPE)]
    #[case::json(Some("application/json"), StatusCode::UNSUPPORTED_MEDIA_TYPE)]
    #[case::plain(Some("text/plain"), StatusCode::UNSUPPORTED_MEDIA_TYPE)]
    #[case::multipart(
        Some("multipart/form-data; boundary=x"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE
    )]
    #[case::with_charset(
        Some("application/x-www-form-urlencoded; charset=UTF-8"),
        StatusCode::UNPROCESSABLE_ENTITY
    )]
    #[tokio::test]
    async fn accepts_only_url_encoded_forms(
        #[case] content_type: Option<&'static str>,
        #[case] expected: StatusCode,
    ) {
        let dashboard = TestDashboard::start().await;
        let path = format!("/setup/{}", dashboard.setup_link(|_| {}).await);
        let mut headers = vec![SAME_ORIGIN];
        headers.extend(content_type.map(|value| ("content-type", value)));
        let response = dashboard.post(&path, &headers, "email=&password=").await;
        assert_eq!(response.status, expected);
    }

    #[rstest]
    #[case::at_the_limit(FORM_BYTES_MAX, StatusCode::UNPROCESSABLE_ENTITY)]
    #[case::one_byte_more(FORM_BYTES_MAX + 1, StatusCode::PAYLOAD_TOO_LARGE)]
    #[tokio::test]
    async fn rejects_forms_over_the_size_limit(#[case] bytes: usize, #[case] expected: StatusCode) {
        let dashboard = TestDashboard::start().await;
        let path = format!("/setup/{}", dashboard.setup_link(|_| {}).await);
        let field = "email=";
        let body = format!("{field}{}", "x".repeat(bytes - field.len()));
        let response = dashboard.post(&path, &[SAME_ORIGIN, FORM], &body).await;
        assert_eq!(response.status, expected);
    }

    #[tokio::test]
    async fn a_form_that_never_ends_times_out() {
        let dashboard = TestDashboard::start().await;
        let path = format!("/setup/{}", dashboard.setup_link(|_| {}).await);
        let response = dashboard
            .post_without_end(&path, &[SAME_ORIGIN, FORM])
            .await;
        assert_eq!(response.status, StatusCode::REQUEST_TIMEOUT);
        assert_eq!(response.header("connection"), "close");
    }
}
