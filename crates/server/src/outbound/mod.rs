//! Requests to others. Every client is made here, so that none is without its limits: a time for the whole
//! request, no redirects (whoever is configured is asked, and nobody else), no proxies from the environment,
//! a cap on what is read.
//!
//! Where a name must not lead into our own network, its addresses are looked at between resolving and
//! connecting: a check beforehand would be of another answer of the resolver than the connection uses.

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

/// Who is asking, for whoever reads the logs on the other side.
const USER_AGENT: &str = concat!("tributary/", env!("CARGO_PKG_VERSION"));
/// Until a connection is made, name and TLS included. What takes longer is not going to answer in time.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// How long an idle connection is kept for the next request; servers close theirs after a minute or so.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// Where requests may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressPolicy {
    /// Anywhere: what is fetched holds no secret, or the operator allows it.
    Anywhere,
    /// To public addresses only.
    PublicOnly,
}

/// Why there is no answer. No message holds a URL: its query may be somebody's secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutboundError {
    /// The name leads into a private network.
    #[error(
        "the name leads to the private address {0}, and networks.allow_private_addresses is false"
    )]
    Private(IpAddr),
    /// Nothing came in time.
    #[error("no answer in time")]
    TimedOut,
    /// More came than is read.
    #[error("the answer has more than {0} bytes")]
    TooLarge(usize),
    /// No connection came about, so nothing was sent.
    #[error("no connection: {0}")]
    NotConnected(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// A client with its limits.
#[derive(Debug, Clone)]
pub struct Outbound {
    client: Client,
    policy: AddressPolicy,
}

impl Outbound {
    /// Makes a client whose requests may take so long, from the name to the last byte of the answer.
    pub fn new(reach: AddressPolicy, timeout: Duration) -> anyhow::Result<Self> {
        let client = Client::builder()
            .tls_backend_preconfigured(tls()?)
            .dns_resolver(CheckedResolver { policy: reach })
            .user_agent(USER_AGENT)
            .timeout(timeout)
            .connect_timeout(CONNECT_MAX)
            .pool_idle_timeout(IDLE_MAX)
            .redirect(redirect::Policy::none())
            .referer(false)
            .no_proxy()
            .build()?;
        Ok(Self {
            client,
            policy: reach,
        })
    }

    /// A request, to be completed and given to [`Self::send`].
    pub fn request(&self, method: Method, url: &Url) -> RequestBuilder {
        self.client.request(method, url.clone())
    }

    /// Sends a request. An answer of any status is an answer.
    pub async fn send(&self, request: RequestBuilder) -> Result<Response, OutboundError> {
        let request = request
            .build()
            .map_err(|error| classify_error(&error.without_url()))?;
        self.check_literal(request.url())?;
        let answer = self.client.execute(request).await;
        answer.map_err(|error| classify_error(&error.without_url()))
    }

    /// An address that stands in the URL itself is never resolved.
    fn check_literal(&self, url: &Url) -> Result<(), OutboundError> {
        let address = match url.host() {
            Some(Host::Ipv4(v4)) => IpAddr::V4(v4),
            Some(Host::Ipv6(v6)) => IpAddr::V6(v6),
            _ => return Ok(()),
        };
        check_address(self.policy, address)
    }
}

/// Refuses an address that must not be connected to.
fn check_address(reach: AddressPolicy, address: IpAddr) -> Result<(), OutboundError> {
    match reach {
        AddressPolicy::PublicOnly if !is_public(address) => Err(OutboundError::Private(address)),
        _ => Ok(()),
    }
}

/// Reads a body that has at most so many bytes. What a header says of its length is not relied on.
pub async fn read_body(mut answer: Response, bytes_max: usize) -> Result<Vec<u8>, OutboundError> {
    let mut content = Vec::new();
    loop {
        match answer.chunk().await {
            Ok(Some(chunk)) if content.len() + chunk.len() > bytes_max => {
                return Err(OutboundError::TooLarge(bytes_max));
            }
            Ok(Some(chunk)) => content.extend_from_slice(&chunk),
            Ok(None) => return Ok(content),
            Err(error) => return Err(classify_error(&error.without_url())),
        }
    }
}

/// Reads the beginning of a body, and says whether there was more.
pub async fn read_prefix(
    answer: &mut Response,
    bytes_max: usize,
) -> Result<(Vec<u8>, bool), OutboundError> {
    let mut content = Vec::new();
    loop {
        match answer.chunk().await {
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

/// What went wrong, in one line: the last cause says the most.
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

/// TLS with the certificates of this machine, which are read once.
fn tls() -> anyhow::Result<ClientConfig> {
    static TLS: OnceLock<ClientConfig> = OnceLock::new();
    if let Some(ready) = TLS.get() {
        return Ok(ready.clone());
    }
    // Named here and not taken from the process: nobody has to install one beforehand.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(system_roots())
        .with_no_client_auth();
    Ok(TLS.get_or_init(|| config).clone())
}

/// Without certificates the server runs all the same: a simulator needs none.
fn system_roots() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "some of the system's certificates cannot be read");
    }
    let mut roots = RootCertStore::empty();
    let (added, _unusable) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        tracing::warn!(
            "this system has no root certificates, so nobody can be called by https: install \
             ca-certificates, or name a file with SSL_CERT_FILE"
        );
    }
    roots
}
