//! Checks service account assertions: structure, claims and, if the account was registered with its
//! public key, the signature.

use super::tokens::SCOPE;
use crate::accounts::SimulatedServiceAccount;
use crate::clock::{MINUTE, SECOND};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rustls::pki_types::alg_id;
use serde_json::Value;

const AUDIENCE: &str = "https://oauth2.googleapis.com/token";
/// Maximum lifetime of an assertion in seconds.
const LIFETIME_MAX: i64 = 3_600;
/// Allowed clock skew.
const SKEW: i64 = 5 * MINUTE;
const TIMEFRAME: &str = "Invalid JWT: Token must be a short-lived token (60 minutes) and in a \
                         reasonable timeframe. Check your iat and exp values in the JWT claim.";

pub(super) struct Claims {
    pub(super) email: String,
    pub(super) scope: String,
}

/// Checks an assertion, or returns what is wrong with it.
pub(super) fn check<'a>(
    assertion: &str,
    service: impl Fn(&str) -> Option<&'a SimulatedServiceAccount>,
    own_address: Option<&str>,
    now: i64,
) -> Result<Claims, String> {
    let [header_text, claims_text, signature_text] = parts(assertion)?;
    let header = json(header_text, "header")?;
    let claims = json(claims_text, "claims")?;
    let signature = URL_SAFE_NO_PAD
        .decode(signature_text)
        .map_err(|_| "Invalid JWT Signature.")?;
    if header["alg"] != "RS256" || header.get("typ").is_some_and(|typ| typ != "JWT") {
        return Err("Invalid JWT: the header must say alg RS256 and typ JWT.".to_owned());
    }
    let key_id = text(&header, "kid")?;
    let (email, scope) = (text(&claims, "iss")?, text(&claims, "scope")?);
    let audience = text(&claims, "aud")?;
    let account = service(email);
    let token_uri = account.and_then(|one| one.token_uri.as_deref());
    if audience != AUDIENCE && Some(audience) != own_address && Some(audience) != token_uri {
        return Err("Invalid JWT: Failed audience check.".to_owned());
    }
    let (issued, expires) = (time(&claims, "iat")?, time(&claims, "exp")?);
    let is_short = expires > issued && expires - issued <= LIFETIME_MAX;
    let is_now =
        issued.saturating_mul(SECOND) <= now + SKEW && expires.saturating_mul(SECOND) > now;
    if !is_short || !is_now {
        return Err(TIMEFRAME.to_owned());
    }
    if let Some(account) = account {
        let is_key = account
            .private_key_id
            .as_deref()
            .is_none_or(|one| one == key_id);
        let signed = &assertion[..header_text.len() + 1 + claims_text.len()];
        let key = account.public_key.as_deref();
        let is_signed = key.is_none_or(|key| is_signed(key, signed.as_bytes(), &signature));
        if !is_key || !is_signed {
            return Err("Invalid JWT Signature.".to_owned());
        }
    }
    Ok(Claims {
        email: email.to_owned(),
        scope: scope.to_owned(),
    })
}

fn parts(assertion: &str) -> Result<[&str; 3], String> {
    let parts: Vec<_> = assertion.split('.').collect();
    let parts = <[&str; 3]>::try_from(parts);
    parts.map_err(|_| "Invalid JWT: it must have three parts.".to_owned())
}

fn json(part: &str, name: &str) -> Result<Value, String> {
    let bytes = URL_SAFE_NO_PAD.decode(part).ok();
    let value = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    value.ok_or_else(|| format!("Invalid JWT: cannot read the {name}."))
}

fn text<'v>(object: &'v Value, name: &str) -> Result<&'v str, String> {
    let text = object.get(name).and_then(Value::as_str);
    text.filter(|text| !text.is_empty())
        .ok_or_else(|| match name {
            "scope" => format!("Invalid OAuth scope: expected {SCOPE}."),
            _ => format!("Invalid JWT: {name} is required."),
        })
}

fn time(claims: &Value, name: &str) -> Result<i64, String> {
    let time = claims.get(name).and_then(Value::as_i64);
    time.ok_or_else(|| TIMEFRAME.to_owned())
}

/// Verifies a PKCS #1 signature with SHA-256, using the TLS implementation.
fn is_signed(public_key: &str, message: &[u8], signature: &[u8]) -> bool {
    let Some(key) = key_bytes(public_key) else {
        return false;
    };
    let algorithms = rustls::crypto::ring::default_provider().signature_verification_algorithms;
    algorithms
        .all
        .iter()
        .filter(|one| one.signature_alg_id() == alg_id::RSA_PKCS1_SHA256)
        .any(|one| one.verify_signature(&key, message, signature).is_ok())
}

/// Extracts the `RSAPublicKey` from a PEM, bare or within a `SubjectPublicKeyInfo`.
fn key_bytes(pem: &str) -> Option<Vec<u8>> {
    let lines = pem
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with("-----"));
    let der = STANDARD.decode(lines.collect::<String>()).ok()?;
    let (SEQUENCE, content, _) = element(&der)? else {
        return None;
    };
    let (first, _, rest) = element(content)?;
    if first == INTEGER {
        return Some(der);
    }
    match element(rest)? {
        // The first byte is the number of unused bits, always zero.
        (BIT_STRING, bits, _) => bits.strip_prefix(&[0]).map(<[u8]>::to_vec),
        _ => None,
    }
}

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const SEQUENCE: u8 = 0x30;
/// Marks a length that is stored in the following bytes.
const LONG: u8 = 0x80;

/// Splits a DER element into tag, content and rest.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&short, rest) = rest.split_first()?;
    let (length, rest) = if short < LONG {
        (usize::from(short), rest)
    } else {
        let (bytes, rest) = rest.split_at_checked(usize::from(short & !LONG))?;
        let long = bytes.iter().try_fold(0_usize, |sum, &byte| {
            sum.checked_mul(256)?.checked_add(usize::from(byte))
        })?;
        (long, rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

#[cfg(test)]
mod tests;
