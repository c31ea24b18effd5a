//! `GET /api/track/skan` — returns the conversion-value configuration for a device.

use super::caller::{EnabledSdkCaller, SdkCaller};
use super::skan_shape::{DeviceSkanOut, example};
use crate::body::{Envelope, JsonResponse};
use crate::error::{ApiError, Code};
use crate::openapi::errors::SDK_KEY;
use crate::query::QueryString;
use crate::state::ApiState;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tributary_domain::device::DeviceKey;
use tributary_domain::skan::device::{DeviceDocument, document_without_lookup};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::StoreResult;

type DeviceSkanEnvelope = Envelope<DeviceSkanOut>;

#[utoipa::path(
    get, path = "/api/track/skan", tag = "SDK", operation_id = "getDeviceSkan",
    summary = "Get the conversion-value configuration",
    description = "The data that the device needs to compute its conversion value: the enabled \
                   windows without value names, the day's exchange rates, and the device's events \
                   that only the server knows. If the app was never configured, returns a disabled \
                   document with version 0 and no windows. The key may also be sent as `?key=`.",
    security(("sdkKey" = [])),
    params(
        ("deviceId" = Option<String>, Query,
            description = "Device id. If omitted, `server` in the response is empty."),
        ("If-None-Match" = Option<String>, Header,
            description = "ETag of the document that the device has."),
    ),
    extensions(("x-errors" = json!([SDK_KEY, [Code::SdkDisabled, Code::ValidationFailed]]))),
    responses(
        (status = 200, description = "The configuration.", body = inline(DeviceSkanEnvelope),
            headers(("ETag" = String)), example = json!({"data": example()})),
        (status = 304, description = "Not modified.", headers(("ETag" = String))),
    )
)]
pub(crate) async fn skan(
    EnabledSdkCaller(caller): EnabledSdkCaller,
    State(state): State<ApiState>,
    query: QueryString,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let device = query.read_one("deviceId", DeviceKey::parse)?;
    let document = device_document(&state, &caller, device, state.runtime.now()).await?;
    let shown = DeviceSkanOut::of(&document);
    let tag = shown.tag();
    let mut response = JsonResponse::ok(shown).with_etag(&tag).into_response();
    if matches_etag(&headers, &tag) {
        let tag = response.headers_mut().remove(header::ETAG);
        response = StatusCode::NOT_MODIFIED.into_response();
        response
            .headers_mut()
            .extend(tag.map(|tag| (header::ETAG, tag)));
    }
    // The response may be cached, but must be revalidated.
    let policy = HeaderValue::from_static("private, no-cache");
    response.headers_mut().insert(header::CACHE_CONTROL, policy);
    Ok(response)
}

/// Returns the document for a device. Most apps do not use conversion values; for those, the cached
/// configuration is the document.
pub(super) async fn device_document(
    state: &ApiState,
    caller: &SdkCaller,
    device: Option<DeviceKey>,
    at: Timestamp,
) -> StoreResult<DeviceDocument> {
    if let Some(document) = document_without_lookup(&caller.skan, Day::of(at)) {
        return Ok(document);
    }
    let (app, environment) = (caller.app.clone(), caller.environment);
    state
        .store
        .skan_for_device(app, environment, device, at)
        .await
}

/// Tells whether `If-None-Match` contains the tag, strong or weak.
fn matches_etag(headers: &HeaderMap, tag: &str) -> bool {
    let lines = headers.get_all(header::IF_NONE_MATCH).iter();
    let named = lines.filter_map(|line| line.to_str().ok());
    named.flat_map(|line| line.split(',')).any(|named| {
        let named = named.trim();
        let strong = named.strip_prefix("W/").unwrap_or(named);
        named == "*" || strong.trim_matches('"') == tag
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::the_same("\"1.2\"", true)]
    #[case::weak("W/\"1.2\"", true)]
    #[case::among_others("\"1.1\", \"1.2\"", true)]
    #[case::any("*", true)]
    #[case::another("\"1.1\"", false)]
    #[case::empty("", false)]
    fn tags(#[case] header: &str, #[case] expected: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_NONE_MATCH, header.parse().unwrap());
        assert_eq!(matches_etag(&headers, "1.2"), expected);
    }
}
