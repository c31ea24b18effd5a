//! HTTP client for outbound requests. All clients are built here, so that all have the same limits:
//! a timeout for the whole request, no redirects (only the configured host is called), no proxies
//! from the environment, and a maximum response size.
//!
//! If private addresses are not allowed, addresses are checked between resolving and connecting. An
//! earlier check could see a different DNS answer from the one that the connection uses.

mod resolver;
#[cfg(test)]
mod tests;

use crate::public_address::is_public;
use reqwest::{Client, Method, RequestBuilder, Response, redirect};
use resolver::CheckedResolver;
use rustls::{ClientConfig, RootCertStore};
use std::error::Error;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use url::{Host, Url};

/// Identifies this server in the logs of the services it calls.
const USER_AGENT: &str = concat!("tributary/", env!("CARGO_PKG_VERSION"));
/// Timeout for connecting, including DNS and TLS. A slower server would not respond in time either.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// How long an idle connection is kept for reuse. Servers usually close idle connections after
/// about a minute.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// Addresses that requests may go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressPolicy {
    /// Any address, for data without secrets or if the operator allows it.
    Anywhere,
    /// Public addresses only.
    PublicOnly,
}

impl AddressPolicy {
    /// Returns the policy for a setting that allows private addresses or not.
    pub const fn allowing(private_addresses: bool) -> Self {
        if private_addresses {
            Self::Anywhere
        } else {
            Self::PublicOnly
        }
    }
}

/// Reason why there is no response. Messages never contain the URL, because its query may contain a
/// secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    /// The host name resolves to a private address.
    #[error(
        "the host resolves to the private address {0}, which networks.allow_private_addresses (for \
         alerts: webhooks.allow_private_addresses) does not allow"
    )]
    Private(IpAddr),
    /// The request timed out.
    #[error("timed out waiting for a response")]
    TimedOut,
    /// The response exceeds the size limit.
    #[error("the response has more than {0} bytes")]
    TooLarge(usize),
    /// No connection was made, so nothing was sent.
    #[error("cannot connect: {0}")]
    NotConnected(String),
    /// Any other error.
    #[error("{0}")]
    Failed(String),
}

/// An HTTP client with limits.
#[derive(Debug, Clone)]
pub struct Outbound {
    client: Client,
    policy: AddressPolicy,
}

impl Outbound {
    /// Creates a client with a timeout for each request, from DNS to the last byte of the response.
    pub fn new(policy: AddressPolicy, timeout: Duration) -> anyhow::Result<Self> {
        let client = Client::builder()
            .tls_backend_preconfigured(tls()?)
            .dns_resolver(CheckedResolver { policy })
            .user_agent(USER_AGENT)
            .timeout(timeout)
            .connect_timeout(CONNECT_MAX)
            .pool_idle_timeout(IDLE_MAX)
            .redirect(redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .build()?;
        Ok(Self { client, policy })
    }

    /// Starts a request. The caller completes it and passes it to [`Self::send`].
    pub fn request(&self, method: Method, url: &Url) -> RequestBuilder {
        self.client.request(method, url.clone())
    }

    /// Sends a request. A response with any status is `Ok`.
    pub async fn send(&self, request: RequestBuilder) -> Result<Response, OutboundError> {
        let request = request
            .build()
            .map_err(|error| classify_error(&error.without_url()))?;
        self.check_literal(request.url())?;
        let response = self.client.execute(request).await;
        response.map_err(|error| classify_error(&error.without_url()))
    }

    /// Checks a literal IP address in the URL, which is never resolved.
    fn check_literal(&self, url: &Url) -> Result<(), OutboundError> {
        let address = match url.host() {
            Some(Host::Ipv4(v4)) => IpAddr::V4(v4),
            Some(Host::Ipv6(v6)) => IpAddr::V6(v6),
            _ => return Ok(()),
        };
        check_address(self.policy, address)
    }
}

/// Rejects addresses that the policy does not allow.
fn check_address(policy: AddressPolicy, address: IpAddr) -> Result<(), OutboundError> {
    match policy {
        AddressPolicy::PublicOnly if !is_public(address) => Err(OutboundError::Private(address)),
        _ => Ok(()),
    }
}

/// Reads a body up to a size limit. Does not rely on the `Content-Length` header.
pub async fn read_body(mut response: Response, bytes_max: usize) -> Result<Vec<u8>, OutboundError> {
    let mut content = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if content.len() + chunk.len() > bytes_max => {
                return Err(OutboundError::TooLarge(bytes_max));
            }
            Ok(Some(chunk)) => content.extend_from_slice(&chunk),
            Ok(None) => return Ok(content),
            Err(error) => return Err(classify_error(&error.without_url())),
        }
    }
}

/// Reads the next part of a body, or `None` at its end. For bodies of any size, which the caller writes
/// elsewhere.
pub async fn read_chunk(response: &mut Response) -> Result<Option<Vec<u8>>, OutboundError> {
    let chunk = response.chunk().await;
    let chunk = chunk.map_err(|error| classify_error(&error.without_url()))?;
    Ok(chunk.map(Vec::from))
}

/// Reads the first bytes of a body and returns whether there were more.
pub async fn read_prefix(
    response: &mut Response,
    bytes_max: usize,
) -> Result<(Vec<u8>, bool), OutboundError> {
    let mut content = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) => {
                let room = bytes_max - content.len();
                content.extend_from_slice(&chunk[..chunk.len().min(room)]);
                if chunk.len() > room {
                    return Ok((content, true));
                }
            }
            Ok(None) => return Ok((content, false)),
            Err(error) => return Err(classify_error(&error.without_url())),
        }
    }
}

/// Converts an error to one line; the last cause is the most specific.
fn classify_error(error: &reqwest::Error) -> OutboundError {
    let mut texts = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(ours) = error.downcast_ref::<OutboundError>() {
            return ours.clone();
        }
        texts.push(error.to_string());
        cause = error.source();
    }
    if error.is_connect() {
        return OutboundError::NotConnected(texts.join(": "));
    }
    if error.is_timeout() {
        return OutboundError::TimedOut;
    }
    OutboundError::Failed(texts.join(": "))
}

/// Returns the TLS configuration with the system's root certificates, which are read once.
fn tls() -> anyhow::Result<ClientConfig> {
    static TLS: OnceLock<ClientConfig> = OnceLock::new();
    if let Some(ready) = TLS.get() {
        return Ok(ready.clone());
    }
    // Set the provider here, so that no process-wide provider has to be installed first.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(system_roots())
        .with_no_client_auth();
    Ok(TLS.get_or_init(|| config).clone())
}

/// Loads the system's root certificates. The server also runs without any, because a simulator
/// needs none.
fn system_roots() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "failed to read a system certificate");
    }
    let mut roots = RootCertStore::empty();
    let (added, _unusable) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        tracing::warn!(
            "no root certificates found, so https requests will fail; install ca-certificates or \
             set SSL_CERT_FILE"
        );
    }
    roots
}
