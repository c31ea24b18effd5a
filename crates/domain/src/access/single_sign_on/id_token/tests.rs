//! Signatures made by OpenSSL, and claims that must be rejected.

use super::*;
use rstest::rstest;

const RSA_TOKEN: &str = "eyJhbGciOiAiUlMyNTYiLCAia2lkIjogIm9uZSJ9.eyJzdWIiOiAiMSJ9.OmdLbcvBa-zXKIBbilEnD07K5vDuXN\
    _ft0Jy12ULszZ9EfjfHKAxCB7dFSq-YsbXR7zf1na3Q1TOvyicKMGKNTPeESv1H4dwoPb1zlZPYEbWTaA9yCFFGX\
    MO7zu9QF6ObUA78X6ihTLPQ7T7pZVamCXcth8rLnCfyuheI5DaOA_MeERf2_CB9ebAzWlUsVa83kogqlZ635vNtt\
    0guBykZwbTslwxEGNPueWpBSdzFsI5Papp5fV391w1utpqbIQ8Mg1Z4jrsbPFygubx0oGY_RAvX_V2XKUEtaju9M\
    CD4FO9IfIqoDsTOWPkozNxvE9IhcD3oGkzk0tfWnVGWUdFPw";
const RSA_N: &str = "uYZszc3nvMr2nr7gw8l6MDCgpwb2K7r7WbQKAsQE_qDEvjdDg6edxadboLKTox_Mkl44H7XQ_q_5e4rhcPMGkokQ\
    Nm5BKcW2hWiEqjMBFP2g9oMewoi1N1tZdtqHVTaoRyo7LGoUJ0G38QrfVn5-Z7C-kBzSnIMXzUMlbKY-nvtc9jB2\
    vp6gQeKljckyqiMyFbjzlRdD6X4McJ6UScP5vjw0-rY25ZdtCdrzoUyscBjJQ4fh4bGiRZC4eGeK6Tm4N55zX2RL\
    k10Ytv69PTCcT-33FX4JJtTt2iliNtskbt3uJzXhBE1qIQKW-KYPUG68OBomCm5KsuvHv6joF7IWAQ";
const EC_TOKEN: &str = "eyJhbGciOiAiRVMyNTYiLCAia2lkIjogInR3byJ9.eyJzdWIiOiAiMSJ9.YqPm9rPPcNbGtQbJNCsSbOnsc9UCuP\
    8aDAPR_GwqaB0EMpozl3U08eeW28PlY6_wXBbFsIq15ZJdm-WlJs_5qw";
const EC_X: &str = "0MbmwAk9SfwWXCrA4G7CycX4UzzhWNgUe6gFwPeo3lc";
const EC_Y: &str = "QcCbDyGCXJvR4TlQ7k6D9hAG1Y-ToatZiKQ_Hixw56M";

fn decode(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(text)
        .unwrap()
}

fn rsa(id: &str) -> ProviderKey {
    ProviderKey::Rsa {
        id: Some(id.to_owned()),
        modulus: decode(RSA_N),
        exponent: vec![1, 0, 1],
    }
}

fn p256(id: &str) -> ProviderKey {
    ProviderKey::P256 {
        id: Some(id.to_owned()),
        x: decode(EC_X).try_into().unwrap(),
        y: decode(EC_Y).try_into().unwrap(),
    }
}

fn header(algorithm: &str, key_id: Option<&str>) -> IdTokenHeader {
    IdTokenHeader {
        algorithm: algorithm.to_owned(),
        key_id: key_id.map(str::to_owned),
    }
}

#[rstest]
#[case::rsa(RSA_TOKEN, "RS256", Some("one"), Ok(()))]
#[case::rsa_without_key_id(RSA_TOKEN, "RS256", None, Ok(()))]
#[case::ecdsa(EC_TOKEN, "ES256", Some("two"), Ok(()))]
#[case::ecdsa_without_key_id(EC_TOKEN, "ES256", None, Ok(()))]
#[case::key_of_the_other_algorithm(RSA_TOKEN, "RS256", Some("two"), Err(TokenFault::UnknownKey))]
#[case::unknown_key(RSA_TOKEN, "RS256", Some("three"), Err(TokenFault::UnknownKey))]
#[case::another_signature(EC_TOKEN, "RS256", Some("one"), Err(TokenFault::Signature))]
#[case::another_signature_ecdsa(RSA_TOKEN, "ES256", Some("two"), Err(TokenFault::Signature))]
#[case::none(RSA_TOKEN, "none", Some("one"), Err(TokenFault::Algorithm))]
#[case::none_in_capitals(RSA_TOKEN, "NONE", None, Err(TokenFault::Algorithm))]
#[case::shared_key(RSA_TOKEN, "HS256", Some("one"), Err(TokenFault::Algorithm))]
#[case::no_algorithm(RSA_TOKEN, "", Some("one"), Err(TokenFault::Algorithm))]
fn checks_signatures(
    #[case] token: &str,
    #[case] algorithm: &str,
    #[case] key_id: Option<&str>,
    #[case] expected: Result<(), TokenFault>,
) {
    let token = Jws::split(token).unwrap();
    let header = header(algorithm, key_id);
    let keys = [rsa("one"), p256("two")];
    assert_eq!(check_signature(&token, &header, &keys), expected);
    assert_eq!(
        check_signature(&token, &header, &[]),
        Err(match expected {
            Err(TokenFault::Algorithm) => TokenFault::Algorithm,
            _ => TokenFault::UnknownKey,
        })
    );
}

#[test]
fn a_token_without_a_key_id_needs_one_key() {
    let token = Jws::split(RSA_TOKEN).unwrap();
    let keys = [rsa("one"), rsa("other")];
    let checked = check_signature(&token, &header("RS256", None), &keys);
    assert_eq!(checked, Err(TokenFault::UnknownKey));
}

#[test]
fn a_changed_token_is_rejected() {
    for (text, algorithm) in [(RSA_TOKEN, "RS256"), (EC_TOKEN, "ES256")] {
        let mut token = Jws::split(text).unwrap();
        token.signing_input[3] ^= 1;
        let keys = [rsa("one"), p256("two")];
        let checked = check_signature(&token, &header(algorithm, None), &keys);
        assert_eq!(checked, Err(TokenFault::Signature));
        let mut token = Jws::split(text).unwrap();
        token.signature.pop();
        let checked = check_signature(&token, &header(algorithm, None), &keys);
        assert_eq!(checked, Err(TokenFault::Signature));
    }
}

#[test]
fn a_weak_or_broken_key_verifies_nothing() {
    let token = Jws::split(RSA_TOKEN).unwrap();
    for modulus in [Vec::new(), vec![0], vec![0xff; 64], vec![0; 300]] {
        let key = ProviderKey::Rsa {
            id: None,
            modulus,
            exponent: vec![1, 0, 1],
        };
        let checked = check_signature(&token, &header("RS256", None), &[key]);
        assert_eq!(checked, Err(TokenFault::Signature));
    }
    let token = Jws::split(EC_TOKEN).unwrap();
    let key = ProviderKey::P256 {
        id: None,
        x: [1; 32],
        y: [1; 32],
    };
    let checked = check_signature(&token, &header("ES256", None), &[key]);
    assert_eq!(checked, Err(TokenFault::Signature));
}

const NOW: i64 = 1_790_000_000;

fn claims(change: impl FnOnce(&mut IdTokenClaims)) -> IdTokenClaims {
    let mut claims = IdTokenClaims {
        issuer: "https://login.example.com".to_owned(),
        subject: "1".to_owned(),
        audiences: vec!["client".to_owned()],
        authorized_party: None,
        expires_at: NOW + 300,
        issued_at: NOW,
        authenticated_at: None,
        nonce: Some("nonce".to_owned()),
        email: None,
        is_email_verified: false,
        hosted_domain: None,
    };
    change(&mut claims);
    claims
}

fn audiences(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[rstest]
#[case::right(claims(|_| ()), Ok(()))]
#[case::another_issuer(claims(|it| it.issuer.push('/')), Err(TokenFault::Issuer))]
#[case::no_subject(claims(|it| it.subject.clear()), Err(TokenFault::Malformed))]
#[case::endless_subject(claims(|it| it.subject = "x".repeat(256)), Err(TokenFault::Malformed))]
#[case::another_client(
    claims(|it| it.audiences = audiences(&["other"])),
    Err(TokenFault::Audience)
)]
#[case::no_audience(claims(|it| it.audiences.clear()), Err(TokenFault::Audience))]
#[case::several_clients(
    claims(|it| it.audiences = audiences(&["client", "other"])),
    Err(TokenFault::Audience)
)]
#[case::several_clients_for_us(
    claims(|it| {
        it.audiences = audiences(&["client", "other"]);
        it.authorized_party = Some("client".to_owned());
    }),
    Ok(())
)]
#[case::for_another_party(
    claims(|it| it.authorized_party = Some("other".to_owned())),
    Err(TokenFault::Audience)
)]
#[case::just_expired(claims(|it| it.expires_at = NOW - 119), Ok(()))]
#[case::expired(claims(|it| it.expires_at = NOW - 120), Err(TokenFault::Time))]
#[case::slightly_early(claims(|it| it.issued_at = NOW + 120), Ok(()))]
#[case::early(claims(|it| it.issued_at = NOW + 121), Err(TokenFault::Time))]
#[case::ten_minutes_old(claims(|it| it.issued_at = NOW - 720), Ok(()))]
#[case::old(claims(|it| it.issued_at = NOW - 721), Err(TokenFault::Time))]
#[case::far_future(claims(|it| it.issued_at = i64::MAX), Err(TokenFault::Time))]
#[case::far_past(claims(|it| it.expires_at = i64::MIN), Err(TokenFault::Time))]
#[case::another_nonce(claims(|it| it.nonce = Some("other".to_owned())), Err(TokenFault::Nonce))]
#[case::no_nonce(claims(|it| it.nonce = None), Err(TokenFault::Nonce))]
fn checks_the_claims(#[case] claims: IdTokenClaims, #[case] expected: Result<(), TokenFault>) {
    let issuer = Issuer::parse("https://login.example.com", false).unwrap();
    let expectation = TokenExpectation {
        issuer: &issuer,
        client_id: "client",
        nonce: "nonce",
        now: Timestamp::from_millis(NOW * 1_000),
    };
    assert_eq!(check_claims(&claims, &expectation), expected);
}

const FIRST: SignInRequest = SignInRequest {
    is_repeated: false,
    supports_auth_time: false,
};
const REPEATED: SignInRequest = SignInRequest {
    is_repeated: true,
    ..FIRST
};

fn supporting(request: SignInRequest) -> SignInRequest {
    SignInRequest {
        supports_auth_time: true,
        ..request
    }
}

#[rstest]
#[case::now(FIRST, Some(NOW), Some(0))]
#[case::an_hour_ago(FIRST, Some(NOW - 3_600), Some(-3_600))]
#[case::an_hour_ago_though_repeated(REPEATED, Some(NOW - 3_600), Some(-3_600))]
#[case::clock_is_ahead(FIRST, Some(NOW + 60), Some(0))]
#[case::overflow(FIRST, Some(i64::MAX), Some(0))]
#[case::not_said(FIRST, None, None)]
#[case::not_said_but_supported(supporting(FIRST), None, None)]
#[case::repeated(REPEATED, None, Some(0))]
#[case::repeated_without_a_supported_claim(supporting(REPEATED), None, None)]
#[case::repeated_with_a_supported_claim(supporting(REPEATED), Some(NOW), Some(0))]
fn a_sign_in_proves_who_the_person_was_then(
    #[case] request: SignInRequest,
    #[case] said: Option<i64>,
    #[case] expected: Option<i64>,
) {
    let now = Timestamp::from_millis(NOW * 1_000);
    let proved_at = claims(|claims| claims.authenticated_at = said).proved_at(request, now);
    let at = |seconds: i64| Timestamp::from_millis((NOW + seconds) * 1_000);
    assert_eq!(proved_at, expected.map_or(NO_PROOF, at));
}
