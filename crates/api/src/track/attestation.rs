//! `POST /api/track/attestation-challenge`, and the check of the token that a device then sends with
//! `configure`.

use super::body::TrackBody;
use super::caller::{EnabledSdkCaller, SdkCaller};
use super::configure_fields::ConfigureRequest;
use crate::body::{Envelope, JsonResponse};
use crate::error::{ApiError, Code};
use crate::fields::{Fields, choice, described_body, object, text, text_as};
use crate::openapi::errors::{SDK_BODY, SDK_KEY};
use crate::sealing::AppSealer;
use crate::state::ApiState;
use crate::time_text::rfc3339;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use serde_json::Value;
use tributary_domain::app::AppSecret;
use tributary_domain::attestation::{
    AttestationCheck, AttestationFailure, AttestationPolicy, AttestationProvider, CHALLENGE_VALID,
    PlayKeys, PlayVerdict, PresentedAttestation, PresentedOutcome,
};
use tributary_domain::device::DeviceKey;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::vocabulary::time::Timestamp;
use utoipa::ToSchema;

/// A challenge for Apple App Attest or Google Play Integrity.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "AttestationChallenge")]
struct ChallengeOut {
    /// Challenge, valid for this device; null if the app does not ask for attestation.
    challenge: Option<String>,
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

type ChallengeEnvelope = Envelope<ChallengeOut>;

described_body! {
    /// The device that will send the token.
    ChallengeFields("AttestationChallengeRequest") = read_device
}

fn read_device(fields: &mut Fields<'_>) -> Option<DeviceKey> {
    let device = text_as(DeviceKey::parse).about("The SDK's device id, as in `configure`.");
    fields.required("deviceId", device)
}

#[utoipa::path(
    post, path = "/api/track/attestation-challenge", tag = "SDK",
    operation_id = "createAttestationChallenge",
    summary = "Get a challenge for attestation",
    description = "Returns a challenge that the SDK passes to Apple App Attest (as the SHA-256 of \
                   its text) or Google Play Integrity (as nonce or request hash). The SDK sends \
                   the token with the next `configure` call. The challenge is valid for ten \
                   minutes, for this device only. If `sdk.attestation` is `off`, the challenge is \
                   null and no token is needed.",
    security(("sdkKey" = [])),
    request_body(content = inline(ChallengeFields), description = "The device.", example = json!({
        "deviceId": "6f9619ff-8b86-4011-b42d-00c04fc964ff"
    })),
    extensions(("x-errors" = json!([SDK_KEY, SDK_BODY, [Code::SdkDisabled]]))),
    responses((status = 200, description = "The challenge.",
        body = inline(ChallengeEnvelope), example = json!({
        "data": {
            "challenge": "AAABoMXUtQAFBQUFBQUFBQUFBQUFBQUFyZ0sV9Yb2wI3xkQkq1b7nJ6gq5m8d0Zx",
            "expiresAt": "2026-01-01T00:10:00.000Z"
        }
    })))
)]
pub(crate) async fn attestation_challenge(
    EnabledSdkCaller(caller): EnabledSdkCaller,
    State(state): State<ApiState>,
    body: TrackBody,
) -> Result<impl IntoResponse, ApiError> {
    let device = body.read(read_device)?;
    let at = state.runtime.now();
    let is_on = caller.app.sdk.attestation != AttestationPolicy::Off;
    let scope = (caller.app.id, caller.environment, &device);
    let random = state.runtime.random_bytes();
    let challenge = is_on.then(|| state.keyring.issue_attestation_challenge(scope, random, at));
    Ok(JsonResponse::ok(ChallengeOut {
        expires_at: is_on.then(|| rfc3339(at.plus(CHALLENGE_VALID))),
        challenge,
    }))
}

/// Reads `attestation` in the body of `configure`. An object without the required fields is a token
/// that cannot be verified, not a missing one.
pub(super) fn read(
    fields: &mut Fields<'_>,
) -> Option<Result<PresentedAttestation, AttestationFailure>> {
    let about =
        "Proof that the device runs the genuine app. Ignored if `sdk.attestation` is `off`.";
    let mut fields = fields.section_as("attestation", object().about(about));
    let is_there = fields.is_present();
    let provider = choice(AttestationProvider::ALL, AttestationProvider::as_str)
        .about("`app_attest` on iOS, `play_integrity` on Android.");
    let provider = fields.optional("type", provider);
    let about = "Attestation object in base64 (App Attest), or integrity token (Play Integrity).";
    let token = fields.optional("token", text().about(about));
    let key_id = fields.optional("keyId", text().about("App Attest key id in base64."));
    let about = "Challenge from `/api/track/attestation-challenge`.";
    let challenge = fields.optional("challenge", text().about(about));
    is_there.then_some(match (provider, token, challenge) {
        (Some(provider), Some(token), Some(challenge)) => Ok(PresentedAttestation {
            provider,
            token,
            key_id,
            challenge,
        }),
        _ => Err(AttestationFailure::Malformed),
    })
}

/// Checks the token of a `configure` call.
pub(super) fn check(
    state: &ApiState,
    caller: &SdkCaller,
    request: &ConfigureRequest,
    at: Timestamp,
) -> PresentedOutcome {
    let policy = caller.app.sdk.attestation;
    if policy == AttestationPolicy::Off {
        return PresentedOutcome::default();
    }
    let verify = |presented: &PresentedAttestation| {
        let play_keys = play_keys(state, caller);
        let check = AttestationCheck {
            app: &caller.app,
            environment: caller.environment,
            device: &request.device,
            platform: request.traits.platform,
            keyring: &state.keyring,
            roots: &state.app_attest_roots,
            play_keys: play_keys.as_ref(),
            read_verdict,
            at,
        };
        check.verify(presented)
    };
    let presented = request.attestation.as_ref();
    PresentedOutcome {
        policy,
        result: presented.map(|one| one.as_ref().map_err(|failure| *failure).and_then(verify)),
    }
}

/// Decrypts the app's Play Integrity keys. Returns `None` if one is missing.
fn play_keys(state: &ApiState, caller: &SdkCaller) -> Option<PlayKeys> {
    let sealer = AppSealer::new(state, caller.app.organization, caller.app.id);
    let open = |secret: AppSecret, sealed: &SealedSecret| {
        let opened = sealer.open_app_secret(secret, sealed);
        if opened.is_none() {
            tracing::error!(app = %caller.app.id, "failed to decrypt {}", secret.as_str());
        }
        opened
    };
    let decryption = caller.play_decryption_key.as_ref()?;
    let verification = caller.play_verification_key.as_ref()?;
    PlayKeys::parse(
        &open(AppSecret::PlayDecryptionKey, decryption)?,
        &open(AppSecret::PlayVerificationKey, verification)?,
    )
}

/// Reads a verdict, which Google signed. Missing fields fail the check that needs them.
fn read_verdict(bytes: &[u8]) -> Option<PlayVerdict> {
    let json: Value = serde_json::from_slice(bytes).ok()?;
    let (request, app) = (&json["requestDetails"], &json["appIntegrity"]);
    let device = &json["deviceIntegrity"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let texts = |value: &Value| {
        let values = value.as_array().map(Vec::as_slice).unwrap_or_default();
        values.iter().filter_map(text).collect()
    };
    let millis = &request["timestampMillis"];
    // Google writes 64-bit integers as text.
    let written = millis.as_str().and_then(|millis| millis.parse().ok());
    Some(PlayVerdict {
        nonce: text(&request["nonce"]),
        request_hash: text(&request["requestHash"]),
        package_name: text(&request["requestPackageName"]),
        made_at: written
            .or_else(|| millis.as_i64())
            .map(Timestamp::from_millis),
        app_recognition: text(&app["appRecognitionVerdict"]),
        certificate_digests: texts(&app["certificateSha256Digest"]),
        device_recognition: texts(&device["deviceRecognitionVerdict"]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::InputValue;
    use rstest::rstest;
    use tributary_domain::vocabulary::fault::Faults;

    #[test]
    fn verdicts_are_read() {
        let json = br#"{
            "requestDetails": {
                "requestPackageName": "com.example", "nonce": "n", "requestHash": "h",
                "timestampMillis": "1675655009345"
            },
            "appIntegrity": {
                "appRecognitionVerdict": "PLAY_RECOGNIZED", "certificateSha256Digest": ["a", 1]
            },
            "deviceIntegrity": {"deviceRecognitionVerdict": ["MEETS_DEVICE_INTEGRITY"]}
        }"#;
        let verdict = PlayVerdict {
            nonce: Some("n".to_owned()),
            request_hash: Some("h".to_owned()),
            package_name: Some("com.example".to_owned()),
            made_at: Some(Timestamp::from_millis(1_675_655_009_345)),
            app_recognition: Some("PLAY_RECOGNIZED".to_owned()),
            certificate_digests: vec!["a".to_owned()],
            device_recognition: vec!["MEETS_DEVICE_INTEGRITY".to_owned()],
        };
        assert_eq!(read_verdict(json), Some(verdict));
        let numeric = br#"{"requestDetails": {"timestampMillis": 5}}"#;
        let made_at = read_verdict(numeric).and_then(|verdict| verdict.made_at);
        assert_eq!(made_at, Some(Timestamp::from_millis(5)));
        for empty in [&b"{}"[..], b"[]", b"null", br#"{"deviceIntegrity": 1}"#] {
            assert_eq!(read_verdict(empty), Some(PlayVerdict::default()));
        }
        assert_eq!(read_verdict(b"{"), None);
    }

    #[rstest]
    #[case::none("{}", None)]
    #[case::null(r#"{"attestation": null}"#, None)]
    #[case::empty(r#"{"attestation": {}}"#, Some(Err(AttestationFailure::Malformed)))]
    #[case::unknown_type(
        r#"{"attestation": {"type": "safetynet", "token": "t", "challenge": "c"}}"#,
        Some(Err(AttestationFailure::Malformed))
    )]
    #[case::no_challenge(
        r#"{"attestation": {"type": "app_attest", "token": "t"}}"#,
        Some(Err(AttestationFailure::Malformed))
    )]
    #[case::complete(
        r#"{"attestation": {"type": "play_integrity", "token": "t", "challenge": "c"}}"#,
        Some(Ok(PresentedAttestation {
            provider: AttestationProvider::PlayIntegrity,
            token: "t".to_owned(),
            key_id: None,
            challenge: "c".to_owned(),
        }))
    )]
    fn tokens_in_a_body(
        #[case] body: &str,
        #[case] expected: Option<Result<PresentedAttestation, AttestationFailure>>,
    ) {
        let mut faults = Faults::new();
        let body = InputValue::Text(serde_json::from_str(body).unwrap());
        let found = read(&mut Fields::lenient(body, &mut faults));
        assert_eq!(found, expected);
    }
}
