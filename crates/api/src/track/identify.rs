//! `POST /api/track/identify` — sets a device's user.

use super::body::TrackBody;
use super::caller::EnabledSdkCaller;
use super::configure_fields::{user_id, user_id_signature};
use crate::error::{ApiError, Code};
use crate::fields::{Fields, described_body, object, text_as};
use crate::openapi::errors::{SDK_BODY, SDK_KEY};
use crate::state::ApiState;
use axum::extract::State;
use axum::http::StatusCode;
use tributary_domain::device::{ContactHashes, DeviceKey, IdentityClaim, UserKey};

described_body! {
    /// A device's user. Missing fields keep their values.
    IdentifyFields("Identify") = read
}

#[utoipa::path(
    post, path = "/api/track/identify", tag = "SDK", operation_id = "identifyDevice",
    summary = "Identify a device's user",
    description = "Sets the app's user id and hashes of the user's email address and phone number. \
                   The hashes are computed on the device; plain text is rejected. This may be \
                   called before `configure`.",
    security(("sdkKey" = [])),
    request_body(content = inline(IdentifyFields), description = "The user.", example = json!({
        "deviceId": "6f9619ff-8b86-4011-b42d-00c04fc964ff",
        "userId": "user-42",
        "matching": {"email": "0c7e6a405862e402eb76a70f8a26fc732d07c32931e9fae9ab1582911d2e8a3b"}
    })),
    extensions(("x-errors" = json!([SDK_KEY, SDK_BODY, [Code::SdkDisabled]]))),
    responses((status = 204, description = "Stored."))
)]
pub(crate) async fn identify(
    EnabledSdkCaller(caller): EnabledSdkCaller,
    State(state): State<ApiState>,
    body: TrackBody,
) -> Result<StatusCode, ApiError> {
    let request = body.read(read)?;
    let (app, environment, at) = (caller.app.id, caller.environment, state.runtime.now());
    let claim = caller.claim(&state, at, request.user, request.signature.as_deref());
    let identity = IdentityClaim {
        contact_hashes: request.contact_hashes,
        ..claim
    };
    state
        .store
        .identify(app, environment, request.device, identity, at)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A parsed request.
struct IdentifyRequest {
    device: DeviceKey,
    user: Option<UserKey>,
    signature: Option<String>,
    contact_hashes: ContactHashes,
}

fn read(fields: &mut Fields<'_>) -> Option<IdentifyRequest> {
    let device = fields.required("deviceId", text_as(DeviceKey::parse));
    let user = user_id().about("The app's user id, 1–255 bytes.");
    let user = fields.optional("userId", user).flatten();
    let signature = user_id_signature(fields);
    let hashes = object().about(
        "SHA-256 hashes computed on the device, 64 hexadecimal digits each. Plain text is \
         rejected.",
    );
    let mut section = fields.section_as("matching", hashes);
    let mut hash = |name, about| {
        let hash = text_as(ContactHashes::parse_hash)
            .size(64..=64)
            .about(about);
        section.optional(name, hash)
    };
    let contact_hashes = ContactHashes {
        email: hash(
            "email",
            "Hash of the email address, trimmed and in lower case.",
        ),
        email_google: hash(
            "emailGoogle",
            "Like `email`; for Gmail addresses without dots and `+suffix`.",
        ),
        phone: hash(
            "phone",
            "Hash of the phone number's digits, with country code.",
        ),
        phone_e164: hash(
            "phoneE164",
            "Hash of `+` and the phone number's digits, with country code.",
        ),
    };
    Some(IdentifyRequest {
        device: device?,
        user,
        signature,
        contact_hashes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::InputValue;
    use rstest::rstest;
    use tributary_domain::vocabulary::fault::Faults;

    const HASH: &str = "0C7E6A405862E402EB76A70F8A26FC732D07C32931E9FAE9AB1582911D2E8A3B";

    fn parse(body: &str) -> Result<IdentifyRequest, Faults> {
        let mut faults = Faults::new();
        let body = InputValue::Text(serde_json::from_str(body).unwrap());
        let read = read(&mut Fields::lenient(body, &mut faults));
        read.filter(|_| faults.is_empty()).ok_or(faults)
    }

    #[test]
    fn hashes_are_stored_in_lower_case_independently() {
        let body = format!(
            r#"{{"deviceId": "d", "userId": "u", "matching": {{"phoneE164": "{HASH}", "fn": "x"}}}}"#
        );
        let request = parse(&body).ok().unwrap();
        let hashes = request.contact_hashes;
        let (device, user) = (request.device, request.user.unwrap());
        assert_eq!((device.as_str(), user.as_str()), ("d", "u"));
        assert_eq!(hashes.phone_e164, Some(HASH.to_ascii_lowercase()));
        assert_eq!(hashes.phone, None);
    }

    #[rstest]
    #[case::address("foo@bar.com")]
    #[case::number("15551234567")]
    #[case::one_digit_short(&HASH[1..])]
    #[case::not_hexadecimal(&HASH.replace('0', "g"))]
    #[case::empty("")]
    fn plain_text_is_rejected_and_not_echoed(#[case] text: &str) {
        let faults = parse(&format!(
            r#"{{"deviceId": "d", "matching": {{"email": "{text}"}}}}"#
        ))
        .err()
        .unwrap();
        assert_eq!(faults.iter().next().unwrap().field, "matching.email");
        assert!(text.is_empty() || !faults.to_string().contains(text));
    }
}
