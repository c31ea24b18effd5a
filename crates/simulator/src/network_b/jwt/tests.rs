use super::*;
use rstest::rstest;
use serde_json::json;

/// A public key whose private key no longer exists, and the only assertion that was signed with it.
const KEY: &str = include_str!("test_key.pem");
const SIGNED: &str = include_str!("test_assertion.txt");
const EMAIL: &str = "svc@example.iam.gserviceaccount.com";
const ISSUED: i64 = 1_794_600_000;

fn account(public_key: Option<&str>) -> SimulatedServiceAccount {
    SimulatedServiceAccount {
        client_email: EMAIL.to_owned(),
        private_key_id: Some("k1".to_owned()),
        public_key: public_key.map(str::to_owned),
        token_uri: None,
    }
}

fn encoded(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.c2lnbmF0dXJl", part(header), part(claims))
}

#[test]
fn verifies_signatures_with_a_known_key() {
    let (known, now) = (account(Some(KEY)), ISSUED * SECOND);
    let service = |_: &str| Some(&known);
    let claims = check(SIGNED.trim(), service, None, now).expect("signed");
    assert_eq!(
        (claims.email.as_str(), claims.scope.as_str()),
        (EMAIL, SCOPE)
    );

    let mut forged = SIGNED.trim().to_owned();
    let last = if forged.pop() == Some('A') { 'Q' } else { 'A' };
    forged.push(last);
    assert!(check(&forged, service, None, now).is_err());
    let other = account(None);
    assert!(
        check(&forged, |_| Some(&other), None, now).is_ok(),
        "the signature cannot be checked"
    );
}

#[rstest]
#[case::good(json!({}), json!({}), true)]
#[case::algorithm(json!({"alg": "HS256"}), json!({}), false)]
#[case::no_key_id(json!({"kid": null}), json!({}), false)]
#[case::other_key(json!({"kid": "k2"}), json!({}), false)]
#[case::no_issuer(json!({}), json!({"iss": ""}), false)]
#[case::no_scope(json!({}), json!({"scope": null}), false)]
#[case::audience(json!({}), json!({"aud": "https://example.com/token"}), false)]
#[case::own_audience(json!({}), json!({"aud": "http://127.0.0.1:8090/token"}), true)]
#[case::too_long(json!({}), json!({"exp": ISSUED + 3_601}), false)]
#[case::over(json!({}), json!({"iat": ISSUED - 3_600, "exp": ISSUED}), false)]
#[case::not_yet(json!({}), json!({"iat": ISSUED + 301}), false)]
#[case::text_for_a_time(json!({}), json!({"exp": "1794603600"}), false)]
fn checks_the_claims(#[case] header: Value, #[case] claims: Value, #[case] is_good: bool) {
    let merged = |mut base: Value, changes: &Value| {
        for (name, value) in changes.as_object().expect("changes") {
            base[name] = value.clone();
        }
        base
    };
    let header = merged(json!({"alg": "RS256", "typ": "JWT", "kid": "k1"}), &header);
    let base = json!({"iss": EMAIL, "scope": SCOPE, "aud": AUDIENCE, "iat": ISSUED,
        "exp": ISSUED + 3_600});
    let assertion = encoded(&header, &merged(base, &claims));
    let known = account(None);
    let own = Some("http://127.0.0.1:8090/token");
    let checked = check(&assertion, |_| Some(&known), own, ISSUED * SECOND);
    assert_eq!(checked.is_ok(), is_good, "{:?}", checked.err());
}
