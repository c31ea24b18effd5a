//! The connection to a running server: address, key, requests and their repetition.

use super::error::RemoteError;
use super::note;
use crate::cli::{ConnectionOptions, server_url};
use crate::config::{API_KEY_VARIABLE, SERVER_VARIABLE, client_variable};
use crate::outbound::{AddressPolicy, Outbound, OutboundError, read_body, read_prefix};
use anyhow::Context as _;
use reqwest::header::{ACCEPT, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Method, Response, StatusCode};
use secrecy::{ExposeSecret as _, SecretString};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;
use url::Url;

/// Where a server listens by default.
const SERVER_DEFAULT: &str = "http://127.0.0.1:8080";
/// Timeout of a request, except exports. A server gives up on a report earlier.
const REQUEST_MAX: Duration = Duration::from_mins(2);
/// Maximum size of a page. A page of large events takes some megabytes.
const PAGE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Bytes of an error that are read. The API's own errors are shorter.
const ERROR_BYTES_MAX: usize = 64 * 1024;
/// Longest key that is read from a file. A key has about fifty characters.
const KEY_BYTES_MAX: u64 = 1_024;
/// Attempts for a request while the server is busy or restarts.
const ATTEMPTS_MAX: u32 = 5;
/// Delay before the first repetition if the server does not name one. It doubles each time.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Longest delay that a server can ask for. A person would rather start the command again.
const RETRY_DELAY_MAX: Duration = Duration::from_mins(1);

/// Returns the address of the server: the option, the variable, or where a server listens by default.
pub(in crate::commands) fn server_address(option: Option<&Url>) -> anyhow::Result<Url> {
    let parse = |text: &str| server_url(text).map_err(anyhow::Error::msg);
    match (option, client_variable(SERVER_VARIABLE)) {
        (Some(server), _) => Ok(server.clone()),
        (None, Some(text)) => {
            parse(text.trim()).with_context(|| format!("{SERVER_VARIABLE} is not an address"))
        }
        (None, None) => parse(SERVER_DEFAULT),
    }
}

/// Checks that a text can be sent as a key in a header.
pub(in crate::commands) fn checked_key(text: &str) -> anyhow::Result<SecretString> {
    let key = text.trim();
    if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        anyhow::bail!("the API key is not a key: it starts with ak_ and contains no spaces");
    }
    Ok(key.into())
}

/// A running server, and the key for its API.
pub(super) struct ApiConnection {
    client: Outbound,
    server: Url,
    key: SecretString,
}

impl ApiConnection {
    /// Reads the address and the key from the arguments or the variables. Sends nothing yet.
    pub(super) fn open(options: &ConnectionOptions) -> anyhow::Result<Self> {
        let key = match (&options.key_file, client_variable(API_KEY_VARIABLE)) {
            (Some(file), _) => read_key(file)?,
            (None, Some(key)) => key,
            (None, None) => anyhow::bail!(
                "there is no API key: set {API_KEY_VARIABLE} or name a file with --key-file. \
                 `tributary admin key create --permission read-only` creates a key"
            ),
        };
        Ok(Self {
            // The operator names the server, so it may have a private address.
            client: Outbound::new(AddressPolicy::Anywhere, REQUEST_MAX)?,
            server: server_address(options.server.as_ref())?,
            key: checked_key(&key)?,
        })
    }

    /// Returns the body of a resource.
    pub(super) async fn read(
        &self,
        path: &[String],
        parameters: &[(&str, String)],
    ) -> Result<Vec<u8>, RemoteError> {
        let response = self.get(path, parameters, REQUEST_MAX).await?;
        let body = read_body(response, PAGE_BYTES_MAX).await;
        body.map_err(|cause| self.no_answer(cause))
    }

    /// Requests a resource. Waits and repeats the request while the server is busy.
    pub(super) async fn get(
        &self,
        path: &[String],
        parameters: &[(&str, String)],
        timeout: Duration,
    ) -> Result<Response, RemoteError> {
        let url = self.url(path, parameters);
        let mut attempt = 1;
        loop {
            let request = self.client.request(Method::GET, &url);
            let request = request
                .bearer_auth(self.key.expose_secret())
                .header(ACCEPT, "application/json, */*")
                .timeout(timeout);
            let response = self.client.send(request).await;
            let response = response.map_err(|cause| self.no_answer(cause))?;
            let is_busy = matches!(
                response.status(),
                StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
            );
            if !is_busy || attempt == ATTEMPTS_MAX {
                return self.check(response).await;
            }
            let delay = retry_delay(attempt, response.headers().get(RETRY_AFTER));
            note(&format!(
                "the server is busy ({}); trying again in {} s",
                response.status().as_u16(),
                delay.as_secs()
            ));
            tokio::time::sleep(delay).await;
            attempt += 1;
        }
    }

    /// Describes an answer that did not arrive.
    pub(super) fn no_answer(&self, cause: OutboundError) -> RemoteError {
        RemoteError::NoAnswer {
            server: self.server.to_string(),
            cause,
        }
    }

    async fn check(&self, mut response: Response) -> Result<Response, RemoteError> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let location = response.headers().get(LOCATION);
        if let Some(location) = location.and_then(|text| text.to_str().ok()) {
            // The key is not sent to another address.
            note(&format!(
                "the server redirects to {location}; name that address with --server"
            ));
        }
        let body = read_prefix(&mut response, ERROR_BYTES_MAX).await;
        let (body, _more) = body.map_err(|cause| self.no_answer(cause))?;
        Err(RemoteError::refused(self.server.to_string(), status, &body))
    }

    fn url(&self, path: &[String], parameters: &[(&str, String)]) -> Url {
        let mut url = self.server.clone();
        url.path_segments_mut()
            .expect("an http URL has a path; the arguments were checked")
            .pop_if_empty()
            .extend(["api", "v1"])
            .extend(path);
        if !parameters.is_empty() {
            url.query_pairs_mut().extend_pairs(parameters);
        }
        url
    }
}

fn read_key(file: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        io::stdin()
            .lock()
            .take(KEY_BYTES_MAX)
            .read_to_string(&mut text)
    } else {
        let opened = File::open(file);
        opened.and_then(|opened| opened.take(KEY_BYTES_MAX).read_to_string(&mut text))
    };
    read.with_context(|| format!("cannot read the API key from {}", file.display()))?;
    Ok(text)
}

/// Returns the delay that the server asks for, or one that doubles with each attempt.
fn retry_delay(attempt: u32, asked: Option<&HeaderValue>) -> Duration {
    let asked = asked.and_then(|value| value.to_str().ok()?.parse().ok());
    let own = RETRY_DELAY.saturating_mul(2_u32.saturating_pow(attempt - 1));
    asked.map_or(own, Duration::from_secs).min(RETRY_DELAY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::asked(1, Some("7"), 7)]
    #[case::too_long(1, Some("86400"), 60)]
    #[case::a_date(2, Some("Wed, 21 Oct 2026 07:28:00 GMT"), 2)]
    #[case::first(1, None, 1)]
    #[case::later(4, None, 8)]
    fn delays(#[case] attempt: u32, #[case] asked: Option<&'static str>, #[case] seconds: u64) {
        let asked = asked.map(HeaderValue::from_static);
        let delay = retry_delay(attempt, asked.as_ref());
        assert_eq!(delay, Duration::from_secs(seconds));
    }

    #[rstest]
    #[case::host(
        "https://t.example.com",
        "https://t.example.com/api/v1/apps/a%2Fb?search=a%26b"
    )]
    #[case::folder("http://[::1]:1/t/", "http://[::1]:1/t/api/v1/apps/a%2Fb?search=a%26b")]
    fn urls(#[case] server: &str, #[case] expected: &str) {
        let connection = ApiConnection {
            client: Outbound::new(AddressPolicy::Anywhere, REQUEST_MAX).unwrap(),
            server: server_url(server).unwrap(),
            key: "ak_live_x".into(),
        };
        let path = ["apps".to_owned(), "a/b".to_owned()];
        let url = connection.url(&path, &[("search", "a&b".to_owned())]);
        assert_eq!(url.as_str(), expected);
    }
}
