//! Providers for single sign-on. Their URLs come from tenants, so all requests go through the guard
//! for outbound requests, are small and short, and follow no redirects.

mod documents;
#[cfg(test)]
mod tests;

use crate::outbound::{self, AddressPolicy, Outbound, OutboundError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Method, RequestBuilder};
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tributary_dashboard::{CodeRedemption, ProviderFuture, RedeemedCode, SignOnProviders};
use tributary_domain::access::single_sign_on::{
    Issuer, ProviderFault, ProviderKey, ProviderSummary, TokenExpectation, TokenFault,
    check_claims, check_signature,
};
use tributary_domain::vocabulary::jws::Jws;
use tributary_domain::vocabulary::time::Timestamp;
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

/// Timeout for one request, and for waiting until it may begin. A person waits for it.
const REQUEST_MAX: Duration = Duration::from_secs(5);
/// Maximum size of a configuration and of an answer to a code. Large ones have 10 kB.
const DOCUMENT_BYTES_MAX: usize = 64 * 1024;
/// Maximum size of a list of keys. Large ones have 30 kB.
const KEYS_BYTES_MAX: usize = 256 * 1024;
/// How long configuration and keys are used before they are fetched again.
const FRESH: Duration = Duration::from_hours(1);
/// Shortest time between two requests for the same document, whoever causes them: an unknown key,
/// a test, or another attempt after an error.
const FETCH_STEP: Duration = Duration::from_secs(10);
/// Number of providers whose documents are kept: more than an instance has organizations.
const PROVIDERS_MAX: usize = 1_000;
/// Concurrent requests to one provider, so that a slow one does not use up all of them. Further ones
/// wait: a whole office may sign in at the same time.
const REQUESTS_PER_PROVIDER_MAX: u32 = 4;
/// Concurrent requests to all providers.
const REQUESTS_MAX: u32 = 64;

/// A provider's endpoints and keys.
#[derive(Debug, Clone)]
struct Provider {
    authorization_endpoint: Url,
    token_endpoint: Url,
    keys_url: Url,
    /// Whether the client secret is sent in the body instead of the header.
    posts_secret: bool,
    /// Whether it lists `auth_time` among the claims that it supports.
    supports_auth_time: bool,
    keys: Vec<ProviderKey>,
}

/// The result of a fetch. Errors are kept too, so that they are not repeated at once.
#[derive(Clone)]
struct Fetched {
    at: Timestamp,
    /// Tells fetches apart, because several may have the same time.
    number: u64,
    provider: Result<Arc<Provider>, ProviderFault>,
}

#[derive(Default)]
struct State {
    fetched: BTreeMap<Issuer, Fetched>,
    /// Number of fetches so far.
    fetches: u64,
    running: BTreeMap<Issuer, u32>,
}

/// Sends requests to providers, and keeps their documents for a while.
#[derive(Clone)]
pub struct ProviderClient {
    outbound: Outbound,
    allows_private: bool,
    state: Arc<Mutex<State>>,
    /// Wakes those that wait for a slot.
    freed: Arc<Notify>,
}

/// A running request, which counts until it is dropped.
struct RequestSlot {
    client: ProviderClient,
    issuer: Issuer,
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        let mut state = self.client.lock();
        if let Some(running) = state.running.get_mut(&self.issuer) {
            *running -= 1;
            if *running == 0 {
                state.running.remove(&self.issuer);
            }
        }
        drop(state);
        self.client.freed.notify_waiters();
    }
}

impl ProviderClient {
    /// Creates a client. Private addresses are for providers in the operator's own network; with them,
    /// providers on this machine may use plain http.
    pub fn new(allows_private: bool) -> anyhow::Result<Self> {
        let policy = AddressPolicy::allowing(allows_private);
        Ok(Self {
            outbound: Outbound::new(policy, REQUEST_MAX)?,
            allows_private,
            state: Arc::default(),
            freed: Arc::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a request may begin.
    async fn slot(&self, issuer: &Issuer) -> Result<RequestSlot, ProviderFault> {
        let slot = async {
            loop {
                let mut freed = pin!(self.freed.notified());
                // Before looking, so that a slot that is freed in between is not missed.
                freed.as_mut().enable();
                if let Some(slot) = self.try_slot(issuer) {
                    return slot;
                }
                freed.await;
            }
        };
        let waited = tokio::time::timeout(REQUEST_MAX, slot).await;
        waited.map_err(|_| ProviderFault::Busy)
    }

    fn try_slot(&self, issuer: &Issuer) -> Option<RequestSlot> {
        let mut state = self.lock();
        let all: u32 = state.running.values().sum();
        let of_provider = state.running.get(issuer).copied().unwrap_or_default();
        if all >= REQUESTS_MAX || of_provider >= REQUESTS_PER_PROVIDER_MAX {
            return None;
        }
        state.running.insert(issuer.clone(), of_provider + 1);
        Some(RequestSlot {
            client: self.clone(),
            issuer: issuer.clone(),
        })
    }

    /// Returns a provider's documents, fetched at most `age` ago.
    async fn provider(
        &self,
        issuer: &Issuer,
        now: Timestamp,
        age: Duration,
    ) -> Result<Arc<Provider>, ProviderFault> {
        let stored = self.lock().fetched.get(issuer).cloned();
        if let Some(stored) = &stored {
            let age = stored.provider.as_ref().map_or(FETCH_STEP, |_| age);
            // One from the future was stored before the clock was set back.
            if stored.at <= now && now.since(stored.at) < age {
                return stored.provider.clone();
            }
        }
        let _slot = self.slot(issuer).await?;
        let seen = stored.map(|one| one.number);
        let newer = self.lock().fetched.get(issuer).cloned();
        // Another request fetched them while this one waited.
        if let Some(newer) = newer.filter(|one| Some(one.number) != seen) {
            return newer.provider;
        }
        let provider = self.fetch(issuer).await.map(Arc::new);
        let mut state = self.lock();
        state.fetches += 1;
        let fetched = Fetched {
            at: now,
            number: state.fetches,
            provider: provider.clone(),
        };
        state.fetched.insert(issuer.clone(), fetched);
        if state.fetched.len() > PROVIDERS_MAX {
            let oldest = state.fetched.iter().min_by_key(|(_, one)| one.at);
            let oldest = oldest.map(|(issuer, _)| issuer.clone());
            oldest.and_then(|issuer| state.fetched.remove(&issuer));
        }
        provider
    }

    async fn fetch(&self, issuer: &Issuer) -> Result<Provider, ProviderFault> {
        let url = issuer.configuration_url();
        let url = Url::parse(&url).map_err(|_| ProviderFault::NotConnected)?;
        let body = self
            .get("its configuration", &url, DOCUMENT_BYTES_MAX)
            .await?;
        let mut provider = documents::configuration(issuer, &body, self.allows_private)?;
        let body = self
            .get("its key list", &provider.keys_url, KEYS_BYTES_MAX)
            .await?;
        provider.keys = documents::keys(&body)?;
        Ok(provider)
    }

    async fn get(
        &self,
        document: &'static str,
        url: &Url,
        bytes_max: usize,
    ) -> Result<Vec<u8>, ProviderFault> {
        let request = self.outbound.request(Method::GET, url);
        let (status, body) = self.send(request, bytes_max).await?;
        if status != 200 {
            return Err(ProviderFault::Status { document, status });
        }
        Ok(body)
    }

    async fn send(
        &self,
        request: RequestBuilder,
        bytes_max: usize,
    ) -> Result<(u16, Vec<u8>), ProviderFault> {
        let request = request.header(ACCEPT, "application/json");
        let response = self.outbound.send(request).await.map_err(explain)?;
        let status = response.status().as_u16();
        let body = outbound::read_body(response, bytes_max).await;
        Ok((status, body.map_err(explain)?))
    }

    /// Builds the request that redeems a code. Not in the asynchronous function, because a form under
    /// construction cannot be sent to another thread.
    fn token_request(
        &self,
        provider: &Provider,
        redemption: &CodeRedemption,
    ) -> reqwest::RequestBuilder {
        let (id, secret) = (&redemption.settings.client_id, &redemption.client_secret);
        let mut form = Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", &redemption.code)
            .append_pair("redirect_uri", &redemption.redirect_url)
            .append_pair("code_verifier", &redemption.verifier);
        let request = self
            .outbound
            .request(Method::POST, &provider.token_endpoint)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        if !provider.posts_secret {
            let request = request.header(AUTHORIZATION, basic(id, secret));
            return request.body(form.finish());
        }
        form.append_pair("client_id", id)
            .append_pair("client_secret", secret);
        request.body(form.finish())
    }

    /// Redeems a code for an ID token.
    async fn id_token(
        &self,
        provider: &Provider,
        redemption: &CodeRedemption,
    ) -> Result<String, ProviderFault> {
        let _slot = self.slot(&redemption.settings.issuer).await?;
        let request = self.token_request(provider, redemption);
        let (status, body) = self.send(request, DOCUMENT_BYTES_MAX).await?;
        if status != 200 {
            return Err(documents::token_error(status, &body));
        }
        documents::id_token(&body)
    }

    async fn redeem_code(
        &self,
        redemption: &CodeRedemption,
    ) -> Result<RedeemedCode, ProviderFault> {
        let (settings, now) = (&redemption.settings, redemption.now);
        let provider = self.provider(&settings.issuer, now, FRESH).await?;
        let token = self.id_token(&provider, redemption).await?;
        let token = Jws::split(&token).map_err(|_| TokenFault::Malformed)?;
        let header = documents::header(&token.header)?;
        match check_signature(&token, &header, &provider.keys) {
            // The provider may have replaced its keys.
            Err(TokenFault::UnknownKey) => {
                let provider = self.provider(&settings.issuer, now, FETCH_STEP).await?;
                check_signature(&token, &header, &provider.keys)?;
            }
            checked => checked?,
        }
        let claims = documents::claims(&token.payload)?;
        let expected = TokenExpectation {
            issuer: &settings.issuer,
            client_id: &settings.client_id,
            nonce: &redemption.nonce,
            now,
        };
        check_claims(&claims, &expected)?;
        Ok(RedeemedCode {
            claims,
            supports_auth_time: provider.supports_auth_time,
        })
    }
}

impl SignOnProviders for ProviderClient {
    fn allows_http(&self) -> bool {
        self.allows_private
    }

    fn sign_in_page(&self, issuer: Issuer, now: Timestamp) -> ProviderFuture<Url> {
        let client = self.clone();
        Box::pin(async move {
            let provider = client.provider(&issuer, now, FRESH).await?;
            Ok(provider.authorization_endpoint.clone())
        })
    }

    fn redeem(&self, redemption: CodeRedemption) -> ProviderFuture<RedeemedCode> {
        let client = self.clone();
        Box::pin(async move { client.redeem_code(&redemption).await })
    }

    fn test(&self, issuer: Issuer, now: Timestamp) -> ProviderFuture<ProviderSummary> {
        let client = self.clone();
        Box::pin(async move {
            let provider = client.provider(&issuer, now, FETCH_STEP).await?;
            let host = provider.authorization_endpoint.host_str();
            Ok(ProviderSummary {
                sign_in_host: host.unwrap_or_default().to_owned(),
                keys: provider.keys.len(),
            })
        })
    }
}

/// Returns the header for a client. Both parts are encoded like form fields (RFC 6749, 2.3.1).
fn basic(id: &str, secret: &str) -> String {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(id), encoded(secret));
    format!("Basic {}", STANDARD.encode(pair))
}

/// Explains an error without what the provider sent.
fn explain(error: OutboundError) -> ProviderFault {
    match error {
        OutboundError::Private(_) => ProviderFault::PrivateAddress,
        OutboundError::TimedOut => ProviderFault::TimedOut,
        OutboundError::TooLarge(_) => ProviderFault::TooLarge,
        OutboundError::NotConnected(_) | OutboundError::Failed(_) => ProviderFault::NotConnected,
    }
}
