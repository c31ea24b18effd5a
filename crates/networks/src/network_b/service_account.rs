//! Service account: its key file, and assertions signed with it.

use crate::account::UnusableIntegration;
use crate::secret::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Audience for an assertion, unless the key file names another. It does not depend on the base
/// URL.
const AUDIENCE: &str = "https://oauth2.googleapis.com/token";
/// Lifetime of an assertion. Google rejects longer lifetimes.
const ASSERTION_LIFETIME_SECONDS: i64 = 3_600;

/// The fields that are used from a key file.
#[derive(Deserialize)]
struct KeyFile {
    client_email: String,
    private_key: String,
    private_key_id: String,
    project_id: Option<String>,
    token_uri: Option<String>,
}

/// A service account.
#[derive(Clone)]
pub(super) struct ServiceAccount {
    email: String,
    key_id: String,
    audience: String,
    project: Option<String>,
    key: Arc<RsaKeyPair>,
    file: Secret,
    private_key: Secret,
}

#[derive(Serialize)]
struct Header<'a> {
    alg: &'static str,
    typ: &'static str,
    kid: &'a str,
}

#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    scope: &'a str,
    aud: &'a str,
    iat: i64,
    exp: i64,
}

impl ServiceAccount {
    /// Parses the downloaded key file.
    pub(super) fn read(file: Secret) -> Result<Self, UnusableIntegration> {
        let no_file = "credentials.serviceAccountKey must be the whole JSON key file of a service \
                       account, with client_email, private_key and private_key_id.";
        let read: KeyFile =
            serde_json::from_str(file.expose()).map_err(|_| UnusableIntegration::new(no_file))?;
        let no_key = "The private_key in credentials.serviceAccountKey must be an RSA key as the \
                      network issues them (PEM, PKCS #8).";
        let key = key(&read.private_key).ok_or_else(|| UnusableIntegration::new(no_key))?;
        Ok(Self {
            email: read.client_email,
            key_id: read.private_key_id,
            audience: read.token_uri.unwrap_or_else(|| AUDIENCE.to_owned()),
            project: read.project_id,
            key: Arc::new(key),
            file,
            private_key: Secret::new(read.private_key),
        })
    }

    pub(super) const fn secrets(&self) -> [&Secret; 2] {
        [&self.file, &self.private_key]
    }

    pub(super) fn project(&self) -> &str {
        self.project.as_deref().unwrap_or(&self.email)
    }

    /// Returns a signed assertion for an OAuth scope, valid from `now` in Unix seconds. `None` only if signing fails,
    /// which should not happen with a parsed key.
    pub(super) fn assertion(&self, scope: &str, now: i64) -> Option<String> {
        let header = Header {
            alg: "RS256",
            typ: "JWT",
            kid: &self.key_id,
        };
        let claims = Claims {
            iss: &self.email,
            scope,
            aud: &self.audience,
            iat: now,
            exp: now.saturating_add(ASSERTION_LIFETIME_SECONDS),
        };
        let part = |bytes: Vec<u8>| URL_SAFE_NO_PAD.encode(bytes);
        let header = part(crate::json::bytes(&header));
        let signed = format!("{header}.{}", part(crate::json::bytes(&claims)));
        let mut signature = vec![0; self.key.public().modulus_len()];
        // This padding uses no randomness, so the signature is deterministic.
        let unused_rng = SystemRandom::new();
        self.key
            .sign(
                &RSA_PKCS1_SHA256,
                &unused_rng,
                signed.as_bytes(),
                &mut signature,
            )
            .ok()?;
        Some(format!("{signed}.{}", part(signature)))
    }
}

/// Extracts the key from a PEM file.
fn key(pem: &str) -> Option<RsaKeyPair> {
    let (_, rest) = pem.split_once("-----BEGIN PRIVATE KEY-----")?;
    let (body, _) = rest.split_once("-----END PRIVATE KEY-----")?;
    let body: String = body.split_whitespace().collect();
    RsaKeyPair::from_pkcs8(&STANDARD.decode(body).ok()?).ok()
}

impl std::fmt::Debug for ServiceAccount {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ServiceAccount")
            .field("email", &self.email)
            .field("key", &self.file)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network_b::token::SCOPE;
    use ring::signature::{KeyPair, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
    use rstest::rstest;
    use serde_json::{Value, json};

    const KEY_FILE: &str = include_str!("test_key.json");

    fn decoded(part: &str) -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    }

    #[test]
    fn assertions_are_signed_claims() {
        let account = ServiceAccount::read(Secret::new(KEY_FILE)).unwrap();
        let assertion = account.assertion(SCOPE, 1_794_657_600).unwrap();
        let parts: Vec<&str> = assertion.split('.').collect();
        assert_eq!(parts.len(), 3);
        let header = json!({"alg": "RS256", "typ": "JWT", "kid": "test-key-1"});
        assert_eq!(decoded(parts[0]), header);
        let claims = json!({
            "iss": "forwarder@example-project.iam.example.com",
            "scope": "https://www.googleapis.com/auth/datamanager",
            "aud": "https://oauth2.googleapis.com/token",
            "iat": 1_794_657_600, "exp": 1_794_661_200,
        });
        assert_eq!(decoded(parts[1]), claims);
        let public = UnparsedPublicKey::new(
            &RSA_PKCS1_2048_8192_SHA256,
            account.key.public_key().as_ref(),
        );
        let signed = format!("{}.{}", parts[0], parts[1]);
        let signature = URL_SAFE_NO_PAD.decode(parts[2]).unwrap();
        public.verify(signed.as_bytes(), &signature).unwrap();
        assert_eq!(account.assertion(SCOPE, 1_794_657_600).unwrap(), assertion);
    }

    #[test]
    fn the_key_file_can_set_the_audience() {
        let mut file: Value = serde_json::from_str(KEY_FILE).unwrap();
        file["token_uri"] = json!("https://other.example.com/token");
        let account = ServiceAccount::read(Secret::new(file.to_string())).unwrap();
        let assertion = account.assertion(SCOPE, 0).unwrap();
        let claims = decoded(assertion.split('.').nth(1).unwrap());
        assert_eq!(claims["aud"], "https://other.example.com/token");
    }

    #[rstest]
    #[case::no_json("-----BEGIN PRIVATE KEY-----")]
    #[case::no_key(r#"{"client_email":"a","private_key":"x","private_key_id":"k"}"#)]
    #[case::not_even_rsa(
        r#"{"client_email":"a","private_key":"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----","private_key_id":"k"}"#
    )]
    #[case::no_email(r#"{"private_key":"x","private_key_id":"k"}"#)]
    fn rejects_invalid_key_files_without_repeating_them(#[case] file: &str) {
        let refused = ServiceAccount::read(Secret::new(file)).err().unwrap();
        assert!(!refused.message.contains("AAAA") && refused.message.contains("serviceAccountKey"));
    }
}
