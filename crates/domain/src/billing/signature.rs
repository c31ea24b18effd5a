//! Webhook signatures from billing providers. All comparisons take constant time and use the raw
//! bytes.

use crate::keyring::constant_time_eq;
use crate::vocabulary::time::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Maximum difference between a signature's timestamp and now, in either direction. The tolerance
/// only has to cover a single attempt, because a provider signs each retry again.
pub const TOLERANCE_SECONDS: i64 = 300;
/// Prefix of Standard Webhooks secrets.
pub const STANDARD_PREFIX: &str = "whsec_";
/// Maximum number of signatures checked per header. A provider that rotates its secret sends two.
const SIGNATURES_MAX: usize = 16;

/// Returns whether a header contains the secret. A leading `Bearer ` is ignored in the header and
/// in the secret.
pub fn matches_secret(header: &str, secret: &str) -> bool {
    let [header, secret] =
        [header, secret].map(|text| text.strip_prefix("Bearer ").unwrap_or(text));
    constant_time_eq(header.as_bytes(), secret.as_bytes())
}

/// Returns whether `t=…,v1=…` signs this body: HMAC-SHA256 over the time, a dot and the body, in
/// hex digits.
pub fn is_signed(header: &str, body: &[u8], secret: &str, now: Timestamp) -> bool {
    let parts = || {
        header
            .split(',')
            .filter_map(|part| part.trim().split_once('='))
    };
    let mut times = parts().filter(|(name, _)| *name == "t");
    let (Some((_, time)), None) = (times.next(), times.next()) else {
        return false;
    };
    if !is_recent(time, now) {
        return false;
    }
    let expected = mac(secret.as_bytes(), &[time.as_bytes(), b".", body]);
    let signatures = parts().filter(|(name, _)| *name == "v1");
    let signatures = signatures.filter_map(|(_, digits)| from_hex(digits));
    // Checks all signatures, so that the time taken does not reveal which one matched.
    signatures
        .take(SIGNATURES_MAX)
        .fold(false, |found, signature| {
            found | constant_time_eq(&signature, &expected)
        })
}

/// Returns whether a request has a valid Standard Webhooks signature: HMAC-SHA256 over id, time and
/// body, joined by dots, in base64.
pub fn is_standard_signed(
    id: &str,
    time: &str,
    signatures: &str,
    body: &[u8],
    secret: &str,
    now: Timestamp,
) -> bool {
    let key = STANDARD.decode(secret.strip_prefix(STANDARD_PREFIX).unwrap_or(secret));
    let Ok(key) = key else {
        return false;
    };
    if id.is_empty() || id.contains('.') || !is_recent(time, now) {
        return false;
    }
    let content = [id.as_bytes(), b".", time.as_bytes(), b".", body];
    let expected = mac(&key, &content);
    let signatures = signatures
        .split(' ')
        .filter_map(|one| one.strip_prefix("v1,"));
    let signatures = signatures.filter_map(|text| STANDARD.decode(text).ok());
    signatures
        .take(SIGNATURES_MAX)
        .fold(false, |found, signature| {
            found | constant_time_eq(&signature, &expected)
        })
}

/// Creates a Standard Webhooks secret.
pub fn standard_secret(random: [u8; 32]) -> String {
    format!("{STANDARD_PREFIX}{}", STANDARD.encode(random))
}

fn is_recent(seconds: &str, now: Timestamp) -> bool {
    let is_digits = !seconds.is_empty() && seconds.bytes().all(|byte| byte.is_ascii_digit());
    let now = now.as_millis().div_euclid(1_000);
    let sent: Option<i64> = seconds.parse().ok().filter(|_| is_digits);
    sent.is_some_and(|sent| now.abs_diff(sent) <= TOLERANCE_SECONDS.unsigned_abs())
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

fn from_hex(digits: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        let pair = digits.get(index * 2..index * 2 + 2)?;
        if !pair.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::digest::hex;
    use rstest::rstest;

    const SECRET: &str = "a secret of some length";
    const BODY: &[u8] = br#"{"id": "1"}"#;
    const NOW: i64 = 1_700_000_000;

    fn signature(time: i64) -> String {
        hex(&mac(
            SECRET.as_bytes(),
            &[time.to_string().as_bytes(), b".", BODY],
        ))
    }

    fn verified(header: &str, body: &[u8]) -> bool {
        is_signed(
            header,
            body,
            SECRET,
            Timestamp::from_millis(NOW * 1_000 + 999),
        )
    }

    #[rstest]
    #[case::now(0, true)]
    #[case::old(-300, true)]
    #[case::too_old(-301, false)]
    #[case::ahead(300, true)]
    #[case::too_far_ahead(301, false)]
    fn requires_a_recent_time(#[case] offset: i64, #[case] expected: bool) {
        let time = NOW + offset;
        let header = format!("t={time},v1={}", signature(time));
        assert_eq!(verified(&header, BODY), expected);
    }

    #[test]
    fn rejects_any_changed_byte() {
        let header = format!("t={NOW},v1={}", signature(NOW));
        assert!(verified(&header, BODY));
        assert!(!verified(&header, br#"{"id":"1"}"#), "reformatted body");
        assert!(!verified(&header, b""));
        let wrong = header.replace("v1=", "v1=0").replacen('0', "", 1);
        assert!(!verified(&wrong, BODY));
    }

    #[rstest]
    #[case::nothing("")]
    #[case::no_time("v1={}")]
    #[case::no_signature("t=1700000000")]
    #[case::short("t=1700000000,v1=abc")]
    #[case::no_digits("t=1,v1=zz")]
    #[case::two_times("t=1700000000,t=1700000000,v1={}")]
    #[case::time_in_words("t=now,v1={}")]
    #[case::signed_time("t=+1700000000,v1={}")]
    #[case::another_scheme("t=1700000000,v0={}")]
    fn rejects_malformed_headers(#[case] header: &str) {
        assert!(!verified(&header.replace("{}", &signature(NOW)), BODY));
    }

    #[rstest]
    #[case::two_of_which_the_second_is_right("t=1700000000,v1=00,v1={}")]
    #[case::beside_another_scheme("t=1700000000,v0=ff,v1={}")]
    #[case::with_spaces("t=1700000000, v1={}")]
    fn accepts_any_matching_signature(#[case] header: &str) {
        assert!(verified(&header.replace("{}", &signature(NOW)), BODY));
    }

    #[rstest]
    #[case::right("msg_1", "v1,{}", true)]
    #[case::the_second("msg_1", "v1,AAAA v1,{}", true)]
    #[case::beside_an_asymmetric_one("msg_1", "v1a,AAAA v1,{}", true)]
    #[case::another_version("msg_1", "v2,{}", false)]
    #[case::another_id("msg_2", "v1,{}", false)]
    #[case::no_id("", "v1,{}", false)]
    #[case::no_base64("msg_1", "v1,*", false)]
    fn verifies_standard_webhooks(#[case] id: &str, #[case] header: &str, #[case] expected: bool) {
        let secret = standard_secret([7; 32]);
        let time = NOW.to_string();
        let signed = mac(&[7; 32], &[b"msg_1.", time.as_bytes(), b".", BODY]);
        let header = header.replace("{}", &STANDARD.encode(signed));
        let now = Timestamp::from_millis(NOW * 1_000);
        let verify =
            |secret: &str, time: &str| is_standard_signed(id, time, &header, BODY, secret, now);
        assert_eq!(verify(&secret, &time), expected);
        assert!(!verify("whsec_*", &time) && !verify(&secret, "1699999699"));
    }

    #[test]
    fn matches_only_the_exact_secret() {
        assert!(matches_secret(SECRET, SECRET));
        let with_bearer = format!("Bearer {SECRET}");
        assert!(matches_secret(&with_bearer, SECRET) && matches_secret(SECRET, &with_bearer));
        assert!(!matches_secret("Bearer ", SECRET) && !matches_secret("Bearer", SECRET));
        assert!(!matches_secret("", SECRET) && !matches_secret(&SECRET[1..], SECRET));
    }
}
