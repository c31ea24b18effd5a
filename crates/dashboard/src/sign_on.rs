//! What the pages need from the providers for single sign-on.

use std::pin::Pin;
use tributary_domain::access::single_sign_on::{
    IdTokenClaims, Issuer, ProviderFault, ProviderSummary, SingleSignOn,
};
use tributary_domain::vocabulary::time::Timestamp;
use url::Url;

/// An answer of a provider, or why there is none.
pub type ProviderFuture<T> = Pin<Box<dyn Future<Output = Result<T, ProviderFault>> + Send>>;

/// A code that a provider sent through the browser.
pub struct CodeRedemption {
    /// The organization's settings.
    pub settings: SingleSignOn,
    /// Client secret at the provider.
    pub client_secret: String,
    /// The code.
    pub code: String,
    /// Secret of PKCE.
    pub verifier: String,
    /// Nonce that the ID token must contain.
    pub nonce: String,
    /// URL that the provider sent the browser to.
    pub redirect_url: String,
    /// Current time.
    pub now: Timestamp,
}

/// What a provider answers to a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedeemedCode {
    /// Claims of the ID token.
    pub claims: IdTokenClaims,
    /// Whether the provider's configuration lists `auth_time` among the claims that it supports.
    pub supports_auth_time: bool,
}

/// Sends requests to providers, through the guard for outbound requests.
pub trait SignOnProviders: Send + Sync {
    /// Returns whether providers on this machine may use plain http, for tests.
    fn allows_http(&self) -> bool;

    /// Returns the URL of the provider's sign-in page, without parameters.
    fn sign_in_page(&self, issuer: Issuer, now: Timestamp) -> ProviderFuture<Url>;

    /// Redeems a code for an ID token and checks it.
    fn redeem(&self, redemption: CodeRedemption) -> ProviderFuture<RedeemedCode>;

    /// Fetches configuration and keys.
    fn test(&self, issuer: Issuer, now: Timestamp) -> ProviderFuture<ProviderSummary>;
}
