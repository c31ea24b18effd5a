//! Sends requests to the ad networks, with base URLs from the configuration and limits on every
//! request.

use crate::config::NetworksConfig;
use crate::outbound::{self, AddressPolicy, Outbound, OutboundError};
use async_trait::async_trait;
use reqwest::{Method as HttpMethod, Response};
use std::time::{Duration, Instant};
use tributary_domain::integration::Network;
use tributary_forwarder::{RequestTarget, Transport, TransportOutcome};
use tributary_networks::{
    NetworkRequest, NetworkResponse, RESPONSE_BYTES_MAX, RequestMethod, SendOutcome,
};
use url::Url;

/// Upper bound for any request; each request sets a shorter timeout.
const REQUEST_MAX: Duration = Duration::from_mins(1);

/// Sends requests to the networks.
pub struct NetworkTransport {
    outbound: Outbound,
    base_urls: [String; 4],
    token_url: Url,
    reports_url: String,
}

impl NetworkTransport {
    /// Creates a transport from the configuration.
    pub fn new(networks: &NetworksConfig) -> anyhow::Result<Self> {
        let policy = AddressPolicy::allowing(networks.allow_private_addresses);
        let base = |url: &Url| url.as_str().trim_end_matches('/').to_owned();
        Ok(Self {
            outbound: Outbound::new(policy, REQUEST_MAX)?,
            base_urls: [
                base(&networks.network_a.base_url),
                base(&networks.network_b.base_url),
                base(&networks.network_c.base_url),
                base(&networks.network_d.base_url),
            ],
            token_url: networks.network_b.token_url.clone(),
            reports_url: base(&networks.network_b.reports_url),
        })
    }

    fn url(&self, service: RequestTarget, request: &NetworkRequest) -> Option<Url> {
        let [a, b, c, d] = &self.base_urls;
        let base = match service {
            RequestTarget::TokenEndpoint => return Some(self.token_url.clone()),
            RequestTarget::Reports(Network::B) => &self.reports_url,
            RequestTarget::Network(Network::A) | RequestTarget::Reports(Network::A) => a,
            RequestTarget::Network(Network::B) => b,
            RequestTarget::Network(Network::C) | RequestTarget::Reports(Network::C) => c,
            RequestTarget::Network(Network::D) | RequestTarget::Reports(Network::D) => d,
        };
        Url::parse(&format!("{base}{}", request.path_and_query)).ok()
    }

    /// Sends a request and reads at most `bytes_max` bytes of its response.
    pub(crate) async fn fetch(
        &self,
        service: RequestTarget,
        request: NetworkRequest,
        timeout: Duration,
        bytes_max: usize,
    ) -> SendOutcome {
        let Some(url) = self.url(service, &request) else {
            return SendOutcome::NotSent;
        };
        let method = match request.method {
            RequestMethod::Post => HttpMethod::POST,
            RequestMethod::Get => HttpMethod::GET,
        };
        let mut built = self.outbound.request(method, &url).timeout(timeout);
        for (name, value) in request.headers {
            built = built.header(name, value);
        }
        match self.outbound.send(built.body(request.body)).await {
            Ok(response) => read_response(response, bytes_max).await,
            Err(error) => {
                tracing::debug!(%error, "network request failed");
                match error {
                    OutboundError::Private(_) | OutboundError::NotConnected(_) => {
                        SendOutcome::NotSent
                    }
                    _ => SendOutcome::Interrupted,
                }
            }
        }
    }
}

/// Reads a response up to the size limit. A response that ends early counts as interrupted.
async fn read_response(mut response: Response, bytes_max: usize) -> SendOutcome {
    let status = response.status().as_u16();
    let text = |value: &reqwest::header::HeaderValue| value.to_str().map(str::to_owned).ok();
    let headers = response
        .headers()
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().to_owned(), text(value)?)))
        .collect();
    match outbound::read_prefix(&mut response, bytes_max).await {
        Ok((body, truncated)) => SendOutcome::Response(NetworkResponse {
            status,
            headers,
            body,
            truncated,
        }),
        Err(_interrupted) => SendOutcome::Interrupted,
    }
}

#[async_trait]
impl Transport for NetworkTransport {
    async fn send(
        &self,
        service: RequestTarget,
        request: NetworkRequest,
        timeout: Duration,
    ) -> TransportOutcome {
        let started_at = Instant::now();
        let outcome = self
            .fetch(service, request, timeout, RESPONSE_BYTES_MAX)
            .await;
        TransportOutcome {
            outcome,
            duration: started_at.elapsed(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ServiceConfig as ServiceAt, TokenServiceConfig};
    use rstest::rstest;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    fn networks(base: &str, allow_private_addresses: bool) -> NetworksConfig {
        let base_url = Url::parse(base).unwrap();
        let service = || ServiceAt {
            base_url: base_url.clone(),
        };
        NetworksConfig {
            allow_private_addresses,
            network_a: service(),
            network_b: TokenServiceConfig {
                base_url: base_url.clone(),
                token_url: base_url.clone(),
                reports_url: base_url.clone(),
            },
            network_c: service(),
            network_d: service(),
        }
    }

    fn request() -> NetworkRequest {
        NetworkRequest {
            method: RequestMethod::Post,
            path_and_query: "/v1/events?secret=canary".to_owned(),
            headers: vec![("content-type", "application/json".to_owned())],
            body: b"{}".to_vec(),
        }
    }

    async fn send(networks: &NetworksConfig) -> SendOutcome {
        let transport = NetworkTransport::new(networks).unwrap();
        let service = RequestTarget::Network(Network::D);
        let timeout = Duration::from_millis(500);
        transport.send(service, request(), timeout).await.outcome
    }

    /// Accepts one connection, reads from it, responds with these bytes and closes it.
    async fn serve_bytes(bytes: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buffer = [0; 1_024];
            let _read = stream.read(&mut buffer).await;
            let _written = stream.write_all(bytes).await;
        });
        format!("http://127.0.0.1:{port}")
    }

    #[rstest]
    #[case::closed_without_a_response(b"", SendOutcome::Interrupted)]
    #[case::broke_off(
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf",
        SendOutcome::Interrupted
    )]
    #[tokio::test]
    async fn an_incomplete_response_counts_as_interrupted(
        #[case] bytes: &'static [u8],
        #[case] expected: SendOutcome,
    ) {
        let base = serve_bytes(bytes).await;
        assert_eq!(send(&networks(&base, true)).await, expected);
    }

    #[tokio::test]
    async fn refused_connections_and_private_addresses_count_as_not_sent() {
        assert_eq!(
            send(&networks("http://127.0.0.1:1", true)).await,
            SendOutcome::NotSent
        );
        let base = serve_bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        assert_eq!(send(&networks(&base, false)).await, SendOutcome::NotSent);
    }

    #[tokio::test]
    async fn reads_a_response_with_its_headers() {
        let base =
            serve_bytes(b"HTTP/1.1 429 Slow\r\nRetry-After: 7\r\ncontent-length: 2\r\n\r\n{}")
                .await;
        let SendOutcome::Response(response) = send(&networks(&base, true)).await else {
            panic!("expected a response")
        };
        assert_eq!(
            (response.status, response.body, response.truncated),
            (429, b"{}".to_vec(), false)
        );
        assert!(
            response
                .headers
                .contains(&("retry-after".to_owned(), "7".to_owned()))
        );
    }

    #[tokio::test]
    async fn a_timeout_counts_as_interrupted() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        assert_eq!(send(&networks(&base, true)).await, SendOutcome::Interrupted);
    }
}
