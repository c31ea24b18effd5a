//! `POST /g/{clickId}/hints` — device details collected by the landing page's script.
//!
//! The page sends these details once, as soon as it has loaded. Invalid values are dropped instead
//! of rejected, because the page does not read the response.

use super::click_request::read_agent;
use crate::error::{ApiError, Code};
use crate::json::{self, JsonNode};
use crate::state::ApiState;
use axum::body::Body;
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, State};
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use std::ops::RangeInclusive;
use std::time::Duration;
use tributary_domain::click::PageHints;
use tributary_domain::device::{Platform, Screen};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_domain::vocabulary::timezone::Timezone;

/// Device details are accepted for this long after the click. Later details may come from a page
/// that was restored from an old tab, so they say nothing about the tap.
const HINTS_WINDOW: Duration = Duration::from_mins(10);
/// Largest body in bytes. The page sends about 200 bytes.
const HINTS_BYTES_MAX: usize = 1_024;
/// Plausible lengths of a screen side, in points.
const SCREEN_POINTS: RangeInclusive<u32> = 1..=20_000;
/// Plausible screen scales, in hundredths.
const SCALE_HUNDREDTHS: RangeInclusive<u32> = 10..=2_000;

pub(super) async fn add(
    State(state): State<ApiState>,
    params: Result<RawPathParams, RawPathParamsRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<StatusCode, ApiError> {
    let params = params.map_err(|_| no_such_click())?;
    let text = params.iter().next().map_or("", |(_, text)| text);
    // The signature rejects forged ids without a database lookup.
    let authentic = state.click_tokens.verify(text).ok_or_else(no_such_click)?;
    let body = read(&state, &headers, body).await?;
    let app = member(&body, "app").and_then(|node| text_of(node, |text| AppId::parse(text).ok()));
    let app = app
        .filter(|app| authentic.belongs_to(*app))
        .ok_or_else(no_such_click)?;
    let window = i64::try_from(HINTS_WINDOW.as_millis()).unwrap_or(i64::MAX);
    let since = state.runtime.now().as_millis().saturating_sub(window);
    let (hints, since) = (hints(&headers, &body), Timestamp::from_millis(since));
    let found = state
        .store
        .add_page_hints(app, authentic.click, hints, since)
        .await?;
    if found {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(no_such_click())
    }
}

/// Returns the same error for unknown, forged and expired clicks, and for other apps' clicks.
fn no_such_click() -> ApiError {
    ApiError::new(Code::NotFound, "Click not found or too old.")
}

async fn read(state: &ApiState, headers: &HeaderMap, body: Body) -> Result<JsonNode, ApiError> {
    let kind = headers.get(header::CONTENT_TYPE);
    if kind.is_none_or(|kind| kind != "application/json") {
        let message = "Send JSON with the header `Content-Type: application/json`.";
        return Err(ApiError::new(Code::UnsupportedMediaType, message));
    }
    let whole = Limited::new(body, HINTS_BYTES_MAX).collect();
    let read = tokio::time::timeout(state.timeouts.body, whole).await;
    let bytes = match read {
        Ok(Ok(collected)) => collected.to_bytes(),
        Ok(Err(_)) => {
            let message = format!("The body must have at most {HINTS_BYTES_MAX} bytes.");
            return Err(ApiError::new(Code::PayloadTooLarge, message));
        }
        Err(_) => {
            let message = "The request body did not arrive in time.";
            return Err(ApiError::new(Code::RequestTimeout, message));
        }
    };
    let text = std::str::from_utf8(&bytes).ok();
    text.and_then(|text| json::parse(text).ok())
        .ok_or_else(|| ApiError::new(Code::MalformedJson, "The body must be a JSON object."))
}

/// Reads the hints in the body, and the client hints that the browser sends on request.
fn hints(headers: &HeaderMap, body: &JsonNode) -> PageHints {
    let agent = read_agent(headers);
    let is_android = agent.platform == Platform::Android;
    PageHints {
        timezone: member(body, "timezone").and_then(|node| {
            text_of(node, |name| {
                Timezone::parse(name)
                    .ok()
                    .map(|zone| zone.as_str().to_owned())
            })
        }),
        screen: member(body, "screen").and_then(screen),
        model: agent.model.filter(|_| is_android),
        os_version: agent.os_version.filter(|_| is_android),
    }
}

fn screen(node: &JsonNode) -> Option<Screen> {
    let number = |name, range: RangeInclusive<u32>| match member(node, name)? {
        JsonNode::Number(digits) => digits.parse().ok().filter(|number| range.contains(number)),
        _ => None,
    };
    Screen::new(
        number("width", SCREEN_POINTS)?,
        number("height", SCREEN_POINTS)?,
        number("scaleHundredths", SCALE_HUNDREDTHS)?,
    )
}

fn member<'a>(node: &'a JsonNode, name: &str) -> Option<&'a JsonNode> {
    let JsonNode::Object(members) = node else {
        return None;
    };
    let found = members.iter().find(|(member, _)| member == name);
    found.map(|(_, node)| node)
}

fn text_of<T>(node: &JsonNode, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
    match node {
        JsonNode::Text(text) => read(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn read(body: &str) -> PageHints {
        hints(&HeaderMap::new(), &json::parse(body).unwrap())
    }

    #[test]
    fn reads_time_zone_and_screen() {
        let body = r#"{"timezone": "Europe/Berlin", "other": 1,
                       "screen": {"width": 390, "height": 844, "scaleHundredths": 300}}"#;
        let hints = read(body);
        assert_eq!(hints.timezone.as_deref(), Some("Europe/Berlin"));
        assert_eq!(hints.screen, Screen::new(844, 390, 300));
        assert_eq!((hints.model, hints.os_version), (None, None));
    }

    #[rstest]
    #[case::nothing("{}")]
    #[case::no_object("[]")]
    #[case::no_zone(r#"{"timezone": "Mars/Olympus"}"#)]
    #[case::markup(r#"{"timezone": "<script>"}"#)]
    #[case::wrong_types(r#"{"timezone": 1, "screen": "x"}"#)]
    #[case::no_height(r#"{"screen": {"width": 390, "scaleHundredths": 300}}"#)]
    #[case::zero(r#"{"screen": {"width": 0, "height": 844, "scaleHundredths": 300}}"#)]
    #[case::negative(r#"{"screen": {"width": -1, "height": 844, "scaleHundredths": 300}}"#)]
    #[case::fraction(r#"{"screen": {"width": 390.5, "height": 844, "scaleHundredths": 300}}"#)]
    #[case::enormous(r#"{"screen": {"width": 390, "height": 20001, "scaleHundredths": 300}}"#)]
    #[case::no_such_scale(r#"{"screen": {"width": 390, "height": 844, "scaleHundredths": 9}}"#)]
    fn invalid_values_are_dropped(#[case] body: &str) {
        assert_eq!(read(body), PageHints::default());
    }

    #[test]
    fn reads_client_hints_of_android() {
        let mut headers = HeaderMap::new();
        let reduced = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 Chrome/126.0.0.0";
        headers.insert("user-agent", reduced.parse().unwrap());
        headers.insert("sec-ch-ua-model", "\"Pixel 8\"".parse().unwrap());
        headers.insert("sec-ch-ua-platform-version", "\"14.0.0\"".parse().unwrap());
        let hints = hints(&headers, &JsonNode::Null);
        assert_eq!(hints.model.as_deref(), Some("Pixel 8"));
        assert_eq!(hints.os_version.as_deref(), Some("14"));
    }
}
