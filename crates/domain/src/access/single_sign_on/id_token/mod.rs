//! Checks an ID token: signature, issuer, audience, times and nonce.
//!
//! The accepted algorithms are fixed. A token that names another one, above all `none` or one with a
//! shared key, is rejected before its signature is looked at.

use super::settings::Issuer;
use crate::access::proof::NO_PROOF;
use crate::keyring::constant_time_eq;
use crate::vocabulary::jws::Jws;
use crate::vocabulary::time::Timestamp;
use p256::ecdsa::signature::Verifier as _;
use p256::ecdsa::{Signature, VerifyingKey};
use std::time::Duration;
use webpki::ring::RSA_PKCS1_2048_8192_SHA256;

/// How far the provider's clock may differ from ours.
const SKEW_MAX: Duration = Duration::from_mins(2);
/// Maximum age of a token. The token is made for a code that is redeemed at once.
const AGE_MAX: Duration = Duration::from_mins(10);
/// Maximum length of a subject in bytes, from OpenID Connect Core.
const SUBJECT_BYTES_MAX: usize = 255;

/// Why an ID token was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// Not a signed token with the required claims.
    #[error("The provider sent no valid ID token.")]
    Malformed,
    /// An algorithm that is not accepted.
    #[error(
        "The provider's ID token is not signed with RS256 or ES256. Choose one of these in the provider's settings."
    )]
    Algorithm,
    /// No key has the token's key id.
    #[error(
        "The provider signed the ID token with a key that it does not publish. Try again in a minute."
    )]
    UnknownKey,
    /// Wrong signature.
    #[error("The signature of the provider's ID token is wrong.")]
    Signature,
    /// Another issuer.
    #[error("The provider's ID token names another issuer than the settings.")]
    Issuer,
    /// Another client.
    #[error(
        "The provider's ID token is for another client id. Check the client id in the settings."
    )]
    Audience,
    /// Expired, or from the future.
    #[error(
        "The provider's ID token is not valid at this time. Check the clocks of the provider and of this server."
    )]
    Time,
    /// Another sign-in.
    #[error("The provider's ID token belongs to another sign-in. Start again.")]
    Nonce,
}

impl TokenFault {
    /// Returns a code for the audit log.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Malformed => "token_malformed",
            Self::Algorithm => "token_algorithm",
            Self::UnknownKey => "token_key",
            Self::Signature => "token_signature",
            Self::Issuer => "token_issuer",
            Self::Audience => "token_audience",
            Self::Time => "token_time",
            Self::Nonce => "token_nonce",
        }
    }
}

/// The header of an ID token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdTokenHeader {
    /// `alg`.
    pub algorithm: String,
    /// `kid`.
    pub key_id: Option<String>,
}

/// The claims of an ID token that are used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdTokenClaims {
    /// `iss`.
    pub issuer: String,
    /// `sub`.
    pub subject: String,
    /// `aud`.
    pub audiences: Vec<String>,
    /// `azp`.
    pub authorized_party: Option<String>,
    /// `exp`, in seconds.
    pub expires_at: i64,
    /// `iat`, in seconds.
    pub issued_at: i64,
    /// `auth_time`, in seconds: when the person last signed in at the provider.
    pub authenticated_at: Option<i64>,
    /// `nonce`.
    pub nonce: Option<String>,
    /// `email`.
    pub email: Option<String>,
    /// `email_verified`, or Entra's `xms_edov`.
    pub is_email_verified: bool,
    /// Google's `hd`: the Workspace domain of the account.
    pub hosted_domain: Option<String>,
}

/// What an ID token without `auth_time` proves depends on this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignInRequest {
    /// Whether the provider was asked to let the person sign in again, even if it knows the browser.
    pub is_repeated: bool,
    /// Whether the provider's configuration lists `auth_time` among the claims that it supports.
    pub supports_auth_time: bool,
}

impl IdTokenClaims {
    /// Returns when the person proved who they are.
    ///
    /// A provider that does not say when it last asked may know the browser. It is believed to have
    /// asked now only if we requested that. The browser carries the request and could leave it out,
    /// but then a provider that supports `auth_time` does not send it either.
    pub fn proved_at(&self, request: SignInRequest, now: Timestamp) -> Timestamp {
        let at = |seconds: i64| Timestamp::from_millis(seconds.saturating_mul(1_000));
        match self.authenticated_at {
            Some(seconds) => at(seconds).min(now),
            None if request.is_repeated && !request.supports_auth_time => now,
            None => NO_PROOF,
        }
    }
}

/// A public key of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderKey {
    /// For RS256: modulus and exponent, big-endian.
    Rsa {
        /// `kid`.
        id: Option<String>,
        /// `n`.
        modulus: Vec<u8>,
        /// `e`.
        exponent: Vec<u8>,
    },
    /// For ES256: a point on P-256.
    P256 {
        /// `kid`.
        id: Option<String>,
        /// `x`.
        x: [u8; 32],
        /// `y`.
        y: [u8; 32],
    },
}

impl ProviderKey {
    fn id(&self) -> Option<&str> {
        match self {
            Self::Rsa { id, .. } | Self::P256 { id, .. } => id.as_deref(),
        }
    }

    const fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa { .. } => "RS256",
            Self::P256 { .. } => "ES256",
        }
    }

    fn verifies(&self, token: &Jws) -> bool {
        match self {
            Self::Rsa {
                modulus, exponent, ..
            } => {
                let key = rsa_public_key(modulus, exponent);
                let (text, signature) = (&token.signing_input, &token.signature);
                RSA_PKCS1_2048_8192_SHA256
                    .verify_signature(&key, text, signature)
                    .is_ok()
            }
            Self::P256 { x, y, .. } => {
                let point = [&[4][..], x, y].concat();
                let key = VerifyingKey::from_sec1_bytes(&point);
                let signature = Signature::from_slice(&token.signature);
                match (key, signature) {
                    (Ok(key), Ok(signature)) => {
                        key.verify(&token.signing_input, &signature).is_ok()
                    }
                    _ => false,
                }
            }
        }
    }
}

/// Encodes an RSA public key in DER: a sequence of two integers.
pub(crate) fn rsa_public_key(modulus: &[u8], exponent: &[u8]) -> Vec<u8> {
    let numbers = [der_integer(modulus), der_integer(exponent)].concat();
    der(0x30, &numbers)
}

fn der_integer(bytes: &[u8]) -> Vec<u8> {
    let first = bytes.iter().position(|byte| *byte != 0);
    let bytes = &bytes[first.unwrap_or(bytes.len())..];
    // A leading bit would make the number negative.
    let is_signed = bytes.first().is_none_or(|byte| *byte >= 0x80);
    let zero: &[u8] = if is_signed { &[0] } else { &[] };
    der(2, &[zero, bytes].concat())
}

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let first = length.iter().position(|byte| *byte != 0);
    let length = &length[first.unwrap_or(length.len() - 1)..];
    let mut bytes = vec![tag];
    if content.len() >= 0x80 {
        bytes.push(0x80 | u8::try_from(length.len()).unwrap_or(u8::MAX));
    }
    bytes.extend_from_slice(length);
    bytes.extend_from_slice(content);
    bytes
}

/// Checks the signature of a token with the provider's keys. A token without a key id needs exactly
/// one key of its algorithm.
pub fn check_signature(
    token: &Jws,
    header: &IdTokenHeader,
    keys: &[ProviderKey],
) -> Result<(), TokenFault> {
    if !["RS256", "ES256"].contains(&header.algorithm.as_str()) {
        return Err(TokenFault::Algorithm);
    }
    let mut fitting = keys
        .iter()
        .filter(|key| key.algorithm() == header.algorithm)
        .filter(|key| header.key_id.is_none() || key.id() == header.key_id.as_deref());
    let (Some(key), None) = (fitting.next(), fitting.next()) else {
        return Err(TokenFault::UnknownKey);
    };
    if key.verifies(token) {
        Ok(())
    } else {
        Err(TokenFault::Signature)
    }
}

/// What a token must match.
#[derive(Debug, Clone, Copy)]
pub struct TokenExpectation<'a> {
    /// The provider.
    pub issuer: &'a Issuer,
    /// Our client id.
    pub client_id: &'a str,
    /// The nonce that was sent to the provider.
    pub nonce: &'a str,
    /// Current time.
    pub now: Timestamp,
}

/// Checks the claims of a token whose signature is right.
pub fn check_claims(
    claims: &IdTokenClaims,
    expected: &TokenExpectation<'_>,
) -> Result<(), TokenFault> {
    if claims.subject.is_empty() || claims.subject.len() > SUBJECT_BYTES_MAX {
        return Err(TokenFault::Malformed);
    }
    if claims.issuer != expected.issuer.as_str() {
        return Err(TokenFault::Issuer);
    }
    let is_ours = |audience: &String| audience == expected.client_id;
    let party = claims.authorized_party.as_ref();
    // A token for several clients must name the one that it was issued to.
    let is_party = match party {
        Some(party) => is_ours(party),
        None => claims.audiences.len() == 1,
    };
    if !claims.audiences.iter().any(is_ours) || !is_party {
        return Err(TokenFault::Audience);
    }
    let at = |seconds: i64| Timestamp::from_millis(seconds.saturating_mul(1_000));
    let (issued, expires) = (at(claims.issued_at), at(claims.expires_at));
    let is_expired = expected.now.minus(SKEW_MAX) >= expires;
    let is_early = issued > expected.now.plus(SKEW_MAX);
    let is_old = expected.now.since(issued) > AGE_MAX + SKEW_MAX;
    if is_expired || is_early || is_old {
        return Err(TokenFault::Time);
    }
    let nonce = claims.nonce.as_deref().unwrap_or_default();
    if !constant_time_eq(nonce.as_bytes(), expected.nonce.as_bytes()) {
        return Err(TokenFault::Nonce);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
