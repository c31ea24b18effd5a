//! Reads what a provider sends. Anything unexpected is rejected.

use super::Provider;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;
use tributary_domain::access::single_sign_on::{
    IdTokenClaims, IdTokenHeader, Issuer, ProviderFault, ProviderKey, TokenFault, is_protected,
};
use url::Url;

/// Usable keys that are kept: more than a provider has while it replaces them.
pub(super) const KEYS_MAX: usize = 20;
/// Length of a key's id. Providers use at most 64 characters.
const KEY_ID_CHARS_MAX: usize = 256;
/// Length of an RSA exponent. Nearly all keys have three bytes.
const EXPONENT_BYTES_MAX: usize = 8;
/// Length of an endpoint's URL. Browsers and proxies do not reliably accept longer ones.
const ENDPOINT_CHARS_MAX: usize = 2_000;
/// Sizes of RSA moduli in bytes: 2048 to 8192 bits. Smaller ones are weak, larger ones slow.
const MODULUS_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;

#[derive(Deserialize)]
struct Configuration {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    claims_supported: Option<Vec<String>>,
}

/// Reads a provider's configuration. Its keys are fetched separately.
pub(super) fn configuration(
    issuer: &Issuer,
    body: &[u8],
    allows_http: bool,
) -> Result<Provider, ProviderFault> {
    let unreadable = |_| ProviderFault::Unreadable("configuration");
    let found: Configuration = serde_json::from_slice(body).map_err(unreadable)?;
    if found.issuer != issuer.as_str() {
        return Err(ProviderFault::IssuerMismatch);
    }
    let endpoint = |name: &'static str, text: &str| {
        if text.len() > ENDPOINT_CHARS_MAX {
            return Err(ProviderFault::TooLarge);
        }
        let url = Url::parse(text).ok();
        url.filter(|url| is_protected(url, allows_http))
            .ok_or(ProviderFault::InsecureEndpoint(name))
    };
    let methods = found.token_endpoint_auth_methods_supported;
    let claims = found.claims_supported.unwrap_or_default();
    let has = |list: &[String], wanted: &str| list.iter().any(|one| one == wanted);
    Ok(Provider {
        authorization_endpoint: endpoint("sign-in page", &found.authorization_endpoint)?,
        token_endpoint: endpoint("token endpoint", &found.token_endpoint)?,
        keys_url: endpoint("key list", &found.jwks_uri)?,
        // Without a list, providers accept the secret in the header.
        posts_secret: methods.is_some_and(|methods| {
            has(&methods, "client_secret_post") && !has(&methods, "client_secret_basic")
        }),
        supports_auth_time: has(&claims, "auth_time"),
        keys: Vec::new(),
    })
}

#[derive(Deserialize)]
struct KeyList {
    keys: Vec<Value>,
}

/// Reads a provider's keys. Keys for other purposes or algorithms are left out.
pub(super) fn keys(body: &[u8]) -> Result<Vec<ProviderKey>, ProviderFault> {
    let unreadable = |_| ProviderFault::Unreadable("key list");
    let list: KeyList = serde_json::from_slice(body).map_err(unreadable)?;
    let keys: Vec<ProviderKey> = list.keys.iter().filter_map(key).take(KEYS_MAX).collect();
    if keys.is_empty() {
        return Err(ProviderFault::NoUsableKey);
    }
    Ok(keys)
}

fn key(value: &Value) -> Option<ProviderKey> {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
    let is_for = |algorithm: &str| {
        text("alg").is_none_or(|one| one == algorithm) && text("use").is_none_or(|one| one == "sig")
    };
    let id = text("kid").map(str::to_owned);
    if id.as_ref().is_some_and(|id| id.len() > KEY_ID_CHARS_MAX) {
        return None;
    }
    match text("kty")? {
        "RSA" if is_for("RS256") => {
            let (modulus, exponent) = (bytes("n")?, bytes("e")?);
            let has_usual_size =
                MODULUS_BYTES.contains(&modulus.len()) && exponent.len() <= EXPONENT_BYTES_MAX;
            has_usual_size.then_some(ProviderKey::Rsa {
                id,
                modulus,
                exponent,
            })
        }
        "EC" if is_for("ES256") && text("crv") == Some("P-256") => Some(ProviderKey::P256 {
            id,
            x: bytes("x")?.try_into().ok()?,
            y: bytes("y")?.try_into().ok()?,
        }),
        _ => None,
    }
}

/// Reads the ID token from the answer to a code.
pub(super) fn id_token(body: &[u8]) -> Result<String, ProviderFault> {
    #[derive(Deserialize)]
    struct Answer {
        id_token: String,
    }
    let unreadable = |_| ProviderFault::Unreadable("ID token");
    let answer: Answer = serde_json::from_slice(body).map_err(unreadable)?;
    Ok(answer.id_token)
}

/// Reads why a code was rejected.
pub(super) fn token_error(status: u16, body: &[u8]) -> ProviderFault {
    #[derive(Deserialize)]
    struct Answer {
        error: String,
    }
    let error = serde_json::from_slice::<Answer>(body).map(|answer| answer.error);
    match (error.as_deref().unwrap_or_default(), status) {
        ("invalid_client" | "unauthorized_client", _) | (_, 401) => ProviderFault::ClientRejected,
        ("invalid_grant", _) => ProviderFault::CodeRejected,
        _ => ProviderFault::Status {
            document: "the sign-in code",
            status,
        },
    }
}

/// Reads the header of an ID token.
pub(super) fn header(bytes: &[u8]) -> Result<IdTokenHeader, TokenFault> {
    #[derive(Deserialize)]
    struct Header {
        alg: String,
        kid: Option<String>,
        /// Extensions that must be understood; none is.
        crit: Option<Value>,
    }
    let header: Header = serde_json::from_slice(bytes).map_err(|_| TokenFault::Malformed)?;
    if header.crit.is_some() {
        return Err(TokenFault::Malformed);
    }
    Ok(IdTokenHeader {
        algorithm: header.alg,
        key_id: header.kid,
    })
}

/// Reads the claims of an ID token.
pub(super) fn claims(bytes: &[u8]) -> Result<IdTokenClaims, TokenFault> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Audience {
        One(String),
        Several(Vec<String>),
    }
    #[derive(Deserialize)]
    struct Claims {
        iss: String,
        sub: String,
        aud: Audience,
        azp: Option<String>,
        exp: i64,
        iat: i64,
        auth_time: Option<Value>,
        nonce: Option<String>,
        email: Option<String>,
        email_verified: Option<Value>,
        xms_edov: Option<Value>,
        hd: Option<String>,
    }
    let claims: Claims = serde_json::from_slice(bytes).map_err(|_| TokenFault::Malformed)?;
    let verified = [&claims.email_verified, &claims.xms_edov];
    Ok(IdTokenClaims {
        issuer: claims.iss,
        subject: claims.sub,
        audiences: match claims.aud {
            Audience::One(one) => vec![one],
            Audience::Several(several) => several,
        },
        authorized_party: claims.azp,
        expires_at: claims.exp,
        issued_at: claims.iat,
        authenticated_at: claims.auth_time.as_ref().and_then(Value::as_i64),
        nonce: claims.nonce,
        email: claims.email,
        // An explicit no of either outweighs a yes.
        is_email_verified: verified.iter().any(|one| one.is_some())
            && verified.iter().all(|one| one.as_ref().is_none_or(is_true)),
        hosted_domain: claims.hd,
    })
}

/// Some providers send booleans as text or as numbers.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(is) => *is,
        Value::String(text) => text == "true" || text == "1",
        Value::Number(number) => number.as_i64() == Some(1),
        _ => false,
    }
}
