//! An OpenID provider on a free port, with real keys. It checks requests like a real one, and signs
//! the tokens that a test asks for, including wrong ones.

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use p256::ecdsa::signature::Signer as _;
use p256::ecdsa::{Signature, SigningKey};
use ring::rand::SystemRandom;
use ring::signature::{KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair, RsaPublicKeyComponents};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::net::TcpListener;
use tributary_domain::vocabulary::digest::Digest;
use url::{Url, form_urlencoded};

/// An RSA key that signs nothing outside of tests (PKCS #8).
const RSA_KEY: &str = include_str!("rsa.pkcs8.base64");
/// Client id of the application.
pub const CLIENT_ID: &str = "tributary client";
/// Client secret of the application, with characters that must be encoded.
pub const CLIENT_SECRET: &str = "canary:secret%+&";

/// How the provider signs tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenAlgorithm {
    /// RS256.
    Rs256,
    /// ES256.
    Es256,
    /// ES256 with a key that is not published.
    OtherEs256,
    /// No signature.
    None,
    /// HS256 with the public key as the shared key.
    Hs256,
}

/// What the provider answers.
#[derive(Debug, Clone)]
pub struct ProviderBehavior {
    /// How tokens are signed.
    pub algorithm: TokenAlgorithm,
    /// Key id in tokens, and of the published keys.
    pub key_id: String,
    /// Claims that replace the right ones. A null removes a claim.
    pub claims: Map<String, Value>,
    /// `auth_time` of tokens for requests with a maximum age. The configuration lists the claim then.
    pub auth_time_on_request: Option<i64>,
    /// Whether it answers codes with an error of its own.
    pub is_down: bool,
}

/// A code that was not redeemed yet.
struct Code {
    nonce: String,
    challenge: String,
    redirect_url: String,
    has_max_age: bool,
}

struct Shared {
    base: String,
    behavior: ProviderBehavior,
    codes: BTreeMap<String, Code>,
    key_fetches: u32,
}

/// A running provider.
pub struct TestProvider {
    /// Issuer URL.
    pub issuer: String,
    shared: Arc<Mutex<Shared>>,
    running: tokio::task::JoinHandle<()>,
}

impl Drop for TestProvider {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl TestProvider {
    /// Starts a provider that signs in a person with this subject and address.
    pub async fn start(subject: &str, email: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("local address");
        let issuer = format!("http://{address}");
        let shared = Arc::new(Mutex::new(Shared {
            base: issuer.clone(),
            behavior: ProviderBehavior {
                algorithm: TokenAlgorithm::Rs256,
                key_id: "1".to_owned(),
                claims: Map::new(),
                auth_time_on_request: None,
                is_down: false,
            },
            codes: BTreeMap::new(),
            key_fetches: 0,
        }));
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(configuration))
            .route("/keys", get(keys))
            .route("/in", get(sign_in))
            .route("/token", post(token))
            .with_state(shared.clone());
        let running = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("it serves");
        });
        let provider = Self {
            issuer,
            shared,
            running,
        };
        provider.set_person(subject, email);
        provider
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().expect("no panic")
    }

    /// Changes who signs in.
    pub fn set_person(&self, subject: &str, email: &str) {
        let claims = [
            ("sub", json!(subject)),
            ("email", json!(email)),
            ("email_verified", json!(true)),
        ];
        self.change(|behavior| {
            for (name, value) in claims {
                behavior.claims.insert(name.to_owned(), value);
            }
        });
    }

    /// Changes what the provider answers.
    pub fn change(&self, change: impl FnOnce(&mut ProviderBehavior)) {
        change(&mut self.lock().behavior);
    }

    /// Returns what the provider answers.
    pub fn behavior(&self) -> ProviderBehavior {
        self.lock().behavior.clone()
    }

    /// Returns how often the keys were fetched.
    pub fn key_fetches(&self) -> u32 {
        self.lock().key_fetches
    }
}

type Provider = State<Arc<Mutex<Shared>>>;

async fn configuration(State(shared): Provider) -> Response {
    let shared = shared.lock().expect("no panic");
    let base = &shared.base;
    let mut claims = vec!["iss", "sub"];
    if shared.behavior.auth_time_on_request.is_some() {
        claims.push("auth_time");
    }
    json_response(&json!({
        "issuer": base,
        "authorization_endpoint": format!("{base}/in"),
        "token_endpoint": format!("{base}/token"),
        "jwks_uri": format!("{base}/keys"),
        "claims_supported": claims,
    }))
}

fn json_response(value: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json")];
    (headers, value.to_string()).into_response()
}

fn rsa_key() -> RsaKeyPair {
    let text: String = RSA_KEY.split_whitespace().collect();
    let bytes = STANDARD.decode(text).expect("base64");
    RsaKeyPair::from_pkcs8(&bytes).expect("an RSA key")
}

fn p256_key(byte: u8) -> SigningKey {
    SigningKey::from_slice(&[byte; 32]).expect("a P-256 key")
}

/// Key id of the P-256 key beside that of the RSA key.
fn p256_id(key_id: &str) -> String {
    format!("{key_id}-p256")
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

async fn keys(State(shared): Provider) -> Response {
    let mut shared = shared.lock().expect("no panic");
    shared.key_fetches += 1;
    let id = &shared.behavior.key_id;
    let public: RsaPublicKeyComponents<Vec<u8>> = rsa_key().public_key().into();
    let point = p256_key(7).verifying_key().to_sec1_point(false);
    let point = point.as_bytes();
    json_response(&json!({ "keys": [
        {
            "kty": "RSA", "use": "sig", "alg": "RS256", "kid": id,
            "n": encode(&public.n),
            "e": encode(&public.e),
        },
        {
            "kty": "EC", "crv": "P-256", "kid": p256_id(id),
            "x": encode(&point[1..33]), "y": encode(&point[33..]),
        },
    ] }))
}

/// The sign-in page, on which the person is signed in at once.
async fn sign_in(State(shared): Provider, RawQuery(query): RawQuery) -> Response {
    let query = pairs(query.unwrap_or_default().as_bytes());
    let of = |name: &str| query.get(name).cloned().unwrap_or_default();
    let is_right = of("response_type") == "code"
        && of("client_id") == CLIENT_ID
        && of("code_challenge_method") == "S256"
        && of("scope").split(' ').any(|one| one == "openid");
    let Ok(mut target) = Url::parse(&of("redirect_uri")) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    if !is_right {
        return StatusCode::BAD_REQUEST.into_response();
    }
    let code = format!("code of {}", of("state"));
    let mut shared = shared.lock().expect("no panic");
    let stored = Code {
        nonce: of("nonce"),
        challenge: of("code_challenge"),
        redirect_url: of("redirect_uri"),
        has_max_age: query.contains_key("max_age"),
    };
    shared.codes.insert(code.clone(), stored);
    target
        .query_pairs_mut()
        .append_pair("code", &code)
        .append_pair("state", &of("state"))
        .append_pair("iss", &shared.base);
    let headers = [(header::LOCATION, target.to_string())];
    (StatusCode::FOUND, headers).into_response()
}

fn pairs(bytes: &[u8]) -> HashMap<String, String> {
    form_urlencoded::parse(bytes).into_owned().collect()
}

fn error(code: &str) -> Response {
    let body = json!({ "error": code }).to_string();
    (StatusCode::BAD_REQUEST, body).into_response()
}

/// Returns whether a request has the client's id and secret.
fn is_client(headers: &HeaderMap) -> bool {
    let value = headers.get(header::AUTHORIZATION);
    let value = value.and_then(|value| value.to_str().ok()?.strip_prefix("Basic "));
    let pair = value.and_then(|text| STANDARD.decode(text).ok());
    let pair = pair.and_then(|bytes| String::from_utf8(bytes).ok());
    let decoded = pair.as_deref().and_then(|pair| pair.split_once(':'));
    let plain = |text: &str| pairs(format!("x={text}").as_bytes()).remove("x");
    decoded.is_some_and(|(id, secret)| {
        plain(id).as_deref() == Some(CLIENT_ID) && plain(secret).as_deref() == Some(CLIENT_SECRET)
    })
}

async fn token(State(shared): Provider, headers: HeaderMap, body: String) -> Response {
    if !is_client(&headers) {
        return error("invalid_client");
    }
    let form = pairs(body.as_bytes());
    let of = |name: &str| form.get(name).cloned().unwrap_or_default();
    let mut shared = shared.lock().expect("no panic");
    if shared.behavior.is_down {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let Some(code) = shared.codes.remove(&of("code")) else {
        return error("invalid_grant");
    };
    let challenge = encode(Digest::of(of("code_verifier").as_bytes()).as_bytes());
    let is_right = of("grant_type") == "authorization_code"
        && challenge == code.challenge
        && of("redirect_uri") == code.redirect_url;
    if !is_right {
        return error("invalid_grant");
    }
    let id_token = id_token(&shared, &code);
    json_response(&json!({ "id_token": id_token, "access_token": "x", "token_type": "Bearer" }))
}

fn id_token(shared: &Shared, code: &Code) -> String {
    let behavior = &shared.behavior;
    let mut claims = json!({ "iss": shared.base, "aud": CLIENT_ID, "nonce": code.nonce });
    let map = claims.as_object_mut().expect("an object");
    if let (Some(at), true) = (behavior.auth_time_on_request, code.has_max_age) {
        map.insert("auth_time".to_owned(), json!(at));
    }
    for (name, value) in &behavior.claims {
        map.insert(name.clone(), value.clone());
    }
    map.retain(|_, value| !value.is_null());
    let (algorithm, key_id) = match behavior.algorithm {
        TokenAlgorithm::Rs256 => ("RS256", behavior.key_id.clone()),
        TokenAlgorithm::Es256 | TokenAlgorithm::OtherEs256 => ("ES256", p256_id(&behavior.key_id)),
        TokenAlgorithm::None => ("none", behavior.key_id.clone()),
        TokenAlgorithm::Hs256 => ("HS256", behavior.key_id.clone()),
    };
    let header = json!({ "alg": algorithm, "kid": key_id });
    let text = format!(
        "{}.{}",
        encode(header.to_string()),
        encode(claims.to_string())
    );
    let signature = match behavior.algorithm {
        TokenAlgorithm::Rs256 => {
            let key = rsa_key();
            let mut bytes = vec![0; key.public_key().modulus_len()];
            key.sign(
                &RSA_PKCS1_SHA256,
                &SystemRandom::new(),
                text.as_bytes(),
                &mut bytes,
            )
            .expect("a signature");
            bytes
        }
        TokenAlgorithm::Es256 => p256_signature(7, &text),
        TokenAlgorithm::OtherEs256 => p256_signature(8, &text),
        TokenAlgorithm::None => Vec::new(),
        TokenAlgorithm::Hs256 => {
            let public = rsa_key().public_key().as_ref().to_vec();
            let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &public);
            ring::hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
        }
    };
    format!("{text}.{}", encode(signature))
}

fn p256_signature(key: u8, text: &str) -> Vec<u8> {
    let signature: Signature = p256_key(key).sign(text.as_bytes());
    signature.to_bytes().to_vec()
}
