use super::samples::{
    AppAttestSample, PLAY_DECRYPTION_KEY, app_attest_root, play_token, play_token_signed_by,
    play_verdict, play_verification_key,
};
use super::*;
use crate::app::samples::any_app;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::Value;
use std::sync::LazyLock;

/// 2026-09-21, within the validity of the test certificates.
const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
const APP_ID: &str = "ABCDE12345.com.example.runner";
const PACKAGE: &str = "com.example.runner";
/// SHA-256 fingerprint of thirty-two times 0xAB.
const CERTIFICATE: &str = "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s";

fn app() -> App {
    let mut app = any_app();
    app.ios.team_id = Some("ABCDE12345".to_owned());
    app.ios.bundle_id = Some(PACKAGE.to_owned());
    app.android.package_name = Some(PACKAGE.to_owned());
    app
}

fn keyring() -> Keyring {
    Keyring::new([7; 32])
}

fn device() -> DeviceKey {
    DeviceKey::parse("device-1").unwrap()
}

fn challenge(environment: Environment) -> String {
    let scope = (any_app().id, environment, &device());
    keyring().issue_attestation_challenge(scope, [5; 16], NOW)
}

/// Reads a verdict as the API does.
fn read_verdict(bytes: &[u8]) -> Option<PlayVerdict> {
    let json: Value = serde_json::from_slice(bytes).ok()?;
    let request = &json["requestDetails"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let texts = |value: &Value| {
        let all = value.as_array().cloned().unwrap_or_default();
        all.iter().filter_map(text).collect()
    };
    let millis = request["timestampMillis"].as_str();
    let millis = millis.and_then(|millis| millis.parse().ok());
    Some(PlayVerdict {
        nonce: text(&request["nonce"]),
        request_hash: text(&request["requestHash"]),
        package_name: text(&request["requestPackageName"]),
        made_at: millis.map(Timestamp::from_millis),
        app_recognition: text(&json["appIntegrity"]["appRecognitionVerdict"]),
        certificate_digests: texts(&json["appIntegrity"]["certificateSha256Digest"]),
        device_recognition: texts(&json["deviceIntegrity"]["deviceRecognitionVerdict"]),
    })
}

/// A check that a test may change before it runs.
#[derive(Clone)]
struct CheckScene {
    app: App,
    environment: Environment,
    device: DeviceKey,
    platform: Platform,
    play_keys: Option<PlayKeys>,
    presented: PresentedAttestation,
    at: Timestamp,
}

impl CheckScene {
    fn ios(sample: &AppAttestSample, environment: Environment) -> Self {
        let presented = PresentedAttestation {
            provider: AttestationProvider::AppAttest,
            token: sample.token(),
            key_id: Some(sample.key_id()),
            challenge: challenge(environment),
        };
        Self {
            app: app(),
            environment,
            device: device(),
            platform: Platform::Ios,
            play_keys: None,
            presented,
            at: NOW,
        }
    }

    fn android(verdict: &str, environment: Environment) -> Self {
        let presented = PresentedAttestation {
            provider: AttestationProvider::PlayIntegrity,
            token: play_token(verdict),
            key_id: None,
            challenge: challenge(environment),
        };
        Self {
            app: app(),
            environment,
            device: device(),
            platform: Platform::Android,
            play_keys: PlayKeys::parse(PLAY_DECRYPTION_KEY, &play_verification_key()),
            presented,
            at: NOW,
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn result(&self) -> Result<(), AttestationFailure> {
        static ROOTS: LazyLock<TrustedRoots> =
            LazyLock::new(|| TrustedRoots::of(vec![app_attest_root()]));
        self.result_with(&ROOTS)
    }

    fn result_with(&self, roots: &TrustedRoots) -> Result<(), AttestationFailure> {
        let check = AttestationCheck {
            app: &self.app,
            environment: self.environment,
            device: &self.device,
            platform: self.platform,
            keyring: &keyring(),
            roots,
            play_keys: self.play_keys.as_ref(),
            read_verdict,
            at: self.at,
        };
        check.verify(&self.presented)
    }
}

fn genuine() -> AppAttestSample {
    AppAttestSample::new(APP_ID, &challenge(Environment::Live))
}

fn sample(change: impl FnOnce(&mut AppAttestSample)) -> CheckScene {
    let mut sample = genuine();
    change(&mut sample);
    CheckScene::ios(&sample, Environment::Live)
}

fn development(environment: Environment) -> CheckScene {
    let mut sample = AppAttestSample::new(APP_ID, &challenge(environment));
    sample.environment = *b"appattestdevelop";
    CheckScene::ios(&sample, environment)
}

/// Built once, because signing takes long without optimisation.
static IOS: LazyLock<CheckScene> = LazyLock::new(|| CheckScene::ios(&genuine(), Environment::Live));
static ANDROID: LazyLock<CheckScene> =
    LazyLock::new(|| CheckScene::android(&verdict(Environment::Live), Environment::Live));

fn ios() -> CheckScene {
    IOS.clone()
}

fn play() -> CheckScene {
    ANDROID.clone()
}

fn changed_object(change: impl FnOnce(&mut Vec<u8>)) -> CheckScene {
    let mut object = STANDARD.decode(&IOS.presented.token).unwrap();
    change(&mut object);
    ios().with(|scene| scene.presented.token = STANDARD.encode(&object))
}

#[rstest]
#[case::genuine(ios(), Ok(()))]
#[case::without_key_id(ios().with(|s| s.presented.key_id = None), Ok(()))]
#[case::wrong_root(sample(|one| one.root_key = 9), Err(AttestationFailure::UntrustedCertificate))]
#[case::wrong_challenge(sample(|one| one.challenge.push('x')), Err(AttestationFailure::ChallengeMismatch))]
#[case::wrong_bundle(sample(|one| one.app_id = "ABCDE12345.com.example.other".to_owned()), Err(AttestationFailure::WrongApp))]
#[case::wrong_team(sample(|one| one.app_id = "ZZZZZ12345.com.example.runner".to_owned()), Err(AttestationFailure::WrongApp))]
#[case::key_used_before(sample(|one| one.counter = 1), Err(AttestationFailure::StaleToken))]
#[case::another_key(sample(|one| one.attested_key = 8), Err(AttestationFailure::KeyMismatch))]
#[case::another_key_id(ios().with(|s| s.presented.key_id = Some("AAAA".to_owned())), Err(AttestationFailure::KeyMismatch))]
#[case::key_id_not_base64(ios().with(|s| s.presented.key_id = Some("*".to_owned())), Err(AttestationFailure::KeyMismatch))]
#[case::expired_certificate(sample(|one| one.not_after = "260101000000Z"), Err(AttestationFailure::UntrustedCertificate))]
#[case::development_build(
    development(Environment::Live),
    Err(AttestationFailure::DevelopmentBuild)
)]
#[case::development_build_with_test_key(development(Environment::Test), Ok(()))]
#[case::unknown_environment(sample(|one| one.environment = [0; 16]), Err(AttestationFailure::Malformed))]
#[case::another_format(sample(|one| one.format = "packed"), Err(AttestationFailure::Malformed))]
#[case::truncated(changed_object(|object| object.truncate(object.len() - 1)), Err(AttestationFailure::Malformed))]
#[case::longer(changed_object(|object| object.push(0)), Err(AttestationFailure::Malformed))]
#[case::empty(changed_object(Vec::clear), Err(AttestationFailure::Malformed))]
#[case::not_base64(ios().with(|s| s.presented.token = "~".to_owned()), Err(AttestationFailure::Malformed))]
#[case::huge(ios().with(|s| s.presented.token = "A".repeat(TOKEN_BYTES_MAX + 1)), Err(AttestationFailure::TooLarge))]
#[case::as_large_as_allowed(ios().with(|s| s.presented.token = "A".repeat(TOKEN_BYTES_MAX)), Err(AttestationFailure::Malformed))]
#[case::huge_key_id(ios().with(|s| s.presented.key_id = Some("A".repeat(257))), Err(AttestationFailure::TooLarge))]
#[case::huge_challenge(ios().with(|s| s.presented.challenge = "A".repeat(257)), Err(AttestationFailure::TooLarge))]
#[case::expired_challenge(ios().with(|s| s.at = NOW.plus(CHALLENGE_VALID)), Err(AttestationFailure::ExpiredChallenge))]
#[case::replayed_for_another_device(ios().with(|s| s.device = DeviceKey::parse("device-2").unwrap()), Err(AttestationFailure::InvalidChallenge))]
#[case::invented_challenge(ios().with(|s| s.presented.challenge = "A".repeat(64)), Err(AttestationFailure::InvalidChallenge))]
#[case::on_android(ios().with(|s| s.platform = Platform::Android), Err(AttestationFailure::WrongPlatform))]
#[case::on_the_web(ios().with(|s| s.platform = Platform::Web), Err(AttestationFailure::WrongPlatform))]
#[case::no_team_id(ios().with(|s| s.app.ios.team_id = None), Err(AttestationFailure::NotConfigured))]
#[case::no_bundle_id(ios().with(|s| s.app.ios.bundle_id = None), Err(AttestationFailure::NotConfigured))]
fn app_attest(#[case] scene: CheckScene, #[case] expected: Result<(), AttestationFailure>) {
    assert_eq!(scene.result(), expected);
}

#[test]
fn test_certificates_are_not_trusted_by_default() {
    let result = ios().result_with(&app_attest_roots());
    assert_eq!(result, Err(AttestationFailure::UntrustedCertificate));
}

/// Every byte of the object is covered by a signature, a hash or a check, except the receipt and
/// the key in COSE form, which are not used.
#[test]
fn a_changed_attestation_object_is_rejected() {
    let length = STANDARD.decode(&IOS.presented.token).unwrap().len();
    let unused: Vec<usize> = (0..length)
        .filter(|index| {
            changed_object(|object| object[*index] ^= 1)
                .result()
                .is_ok()
        })
        .collect();
    // The receipt: its name, and its two bytes.
    assert!(unused.len() <= 9, "{unused:?}");
}

fn verdict(environment: Environment) -> String {
    play_verdict(
        &challenge(environment),
        PACKAGE,
        NOW.as_millis(),
        CERTIFICATE,
    )
}

/// A verdict with one text replaced.
fn verdict_with(from: &str, to: &str) -> CheckScene {
    let genuine = verdict(Environment::Live);
    assert!(genuine.contains(from));
    CheckScene::android(&genuine.replace(from, to), Environment::Live)
}

fn unrecognized(environment: Environment) -> CheckScene {
    let verdict = verdict(environment).replace("PLAY_RECOGNIZED", "UNRECOGNIZED_VERSION");
    CheckScene::android(&verdict, environment)
}

fn made_at(millis: i64) -> CheckScene {
    let made_at = NOW.as_millis() + millis;
    verdict_with(&NOW.as_millis().to_string(), &made_at.to_string())
}

fn token_part(index: usize, text: &str) -> CheckScene {
    play().with(|scene| {
        let mut parts: Vec<&str> = scene.presented.token.split('.').collect();
        parts[index] = text;
        scene.presented.token = parts.join(".");
    })
}

fn fingerprint(byte: &str) -> Vec<String> {
    vec![vec![byte; 32].join(":")]
}

const FORGED: Result<(), AttestationFailure> = Err(AttestationFailure::InvalidSignature);
const STALE: Result<(), AttestationFailure> = Err(AttestationFailure::StaleToken);
const MALFORMED: Result<(), AttestationFailure> = Err(AttestationFailure::Malformed);

#[rstest]
#[case::genuine(play(), Ok(()))]
#[case::standard_request(verdict_with("\"nonce\"", "\"requestHash\""), Ok(()))]
#[case::wrong_challenge(
    verdict_with("\"nonce\":\"", "\"nonce\":\"x"),
    Err(AttestationFailure::ChallengeMismatch)
)]
#[case::no_challenge(
    verdict_with("\"nonce\"", "\"other\""),
    Err(AttestationFailure::ChallengeMismatch)
)]
#[case::another_package(
    verdict_with("\"requestPackageName\":\"com", "\"requestPackageName\":\"org"),
    Err(AttestationFailure::WrongApp)
)]
#[case::just_young_enough(made_at(-599_999), Ok(()))]
#[case::too_old(made_at(-600_000), STALE)]
#[case::slightly_ahead(made_at(120_000), Ok(()))]
#[case::too_far_ahead(made_at(120_001), STALE)]
#[case::no_time(verdict_with("timestampMillis", "other"), STALE)]
#[case::unrecognized(
    unrecognized(Environment::Live),
    Err(AttestationFailure::UnrecognizedApp)
)]
#[case::unrecognized_with_test_key(unrecognized(Environment::Test), Ok(()))]
#[case::rooted(
    verdict_with("MEETS_DEVICE_INTEGRITY", "MEETS_BASIC_INTEGRITY"),
    Err(AttestationFailure::UntrustedDevice)
)]
#[case::emulator(
    verdict_with("[\"MEETS_DEVICE_INTEGRITY\"]", "[]"),
    Err(AttestationFailure::UntrustedDevice)
)]
#[case::known_certificate(play().with(|s| s.app.android.sha256_cert_fingerprints = fingerprint("AB")), Ok(()))]
#[case::another_certificate(play().with(|s| s.app.android.sha256_cert_fingerprints = fingerprint("CD")), Err(AttestationFailure::UnrecognizedApp))]
#[case::signed_by_another_key(play().with(|s| s.presented.token = play_token_signed_by(&verdict(Environment::Live), 9)), FORGED)]
#[case::another_decryption_key(play().with(|s| s.play_keys = PlayKeys::parse(&STANDARD.encode([1; 32]), &play_verification_key())), FORGED)]
#[case::changed_header(token_part(0, "e30"), FORGED)]
#[case::changed_key(token_part(1, &URL_SAFE_NO_PAD.encode([0; 40])), FORGED)]
#[case::short_key(token_part(1, "AAAA"), MALFORMED)]
#[case::changed_nonce(token_part(2, &URL_SAFE_NO_PAD.encode([0; 12])), FORGED)]
#[case::short_nonce(token_part(2, "AAAA"), MALFORMED)]
#[case::changed_content(token_part(3, "AAAA"), FORGED)]
#[case::empty_content(token_part(3, ""), FORGED)]
#[case::changed_tag(token_part(4, &URL_SAFE_NO_PAD.encode([0; 16])), FORGED)]
#[case::no_tag(token_part(4, ""), MALFORMED)]
#[case::a_sixth_part(token_part(4, "AAAA.AAAA"), MALFORMED)]
#[case::empty(play().with(|s| s.presented.token.clear()), MALFORMED)]
#[case::not_json(CheckScene::android("~", Environment::Live), MALFORMED)]
#[case::empty_json(
    CheckScene::android("{}", Environment::Live),
    Err(AttestationFailure::ChallengeMismatch)
)]
#[case::huge(play().with(|s| s.presented.token = "A".repeat(TOKEN_BYTES_MAX + 1)), Err(AttestationFailure::TooLarge))]
#[case::expired_challenge(play().with(|s| s.at = NOW.plus(CHALLENGE_VALID)), Err(AttestationFailure::ExpiredChallenge))]
#[case::replayed_for_another_device(play().with(|s| s.device = DeviceKey::parse("device-2").unwrap()), Err(AttestationFailure::InvalidChallenge))]
#[case::on_ios(play().with(|s| s.platform = Platform::Ios), Err(AttestationFailure::WrongPlatform))]
#[case::no_keys(play().with(|s| s.play_keys = None), Err(AttestationFailure::NotConfigured))]
#[case::no_package(play().with(|s| s.app.android.package_name = None), Err(AttestationFailure::NotConfigured))]
fn play_integrity(#[case] scene: CheckScene, #[case] expected: Result<(), AttestationFailure>) {
    assert_eq!(scene.result(), expected);
}

#[test]
fn keys_from_the_play_console_are_checked() {
    assert!(parse_play_decryption_key(PLAY_DECRYPTION_KEY).is_ok());
    assert!(parse_play_verification_key(&play_verification_key()).is_ok());
    for text in ["", "AAAA", "*", &play_verification_key()] {
        assert!(parse_play_decryption_key(text).is_err(), "{text}");
    }
    let off_curve = play_verification_key().replace('Q', "R");
    for text in ["", "AAAA", "*", PLAY_DECRYPTION_KEY, &off_curve] {
        assert!(parse_play_verification_key(text).is_err(), "{text}");
    }
}

#[test]
fn tokens_and_keys_are_redacted_in_debug_output() {
    let shown = format!("{:?} {:?}", play().presented, play().play_keys);
    assert_eq!(
        shown,
        "PresentedAttestation(PlayIntegrity, ***) Some(PlayKeys(***))"
    );
}

proptest! {
    #[test]
    fn random_tokens_never_panic(bytes: Vec<u8>, text: String) {
        let token = STANDARD.encode(&bytes);
        let ios = ios().with(|scene| scene.presented.token = token);
        assert!(ios.result().is_err());
        let android = play().with(|scene| scene.presented.token = text.clone());
        assert!(android.result().is_err());
        let by_challenge = play().with(|scene| scene.presented.challenge = text);
        assert!(by_challenge.result().is_err());
    }

    #[test]
    fn cut_and_changed_objects_never_panic(at in 0_usize..900, byte: u8, cut: bool) {
        let scene = changed_object(|object| {
            let at = at.min(object.len() - 1);
            object[at] = byte;
            if cut {
                object.truncate(at);
            }
        });
        prop_assert_ne!(scene.result(), Err(AttestationFailure::TooLarge));
    }
}
