//! HTTP over bare sockets: for thousands of connections, and for clients that read and write slowly.

use crate::site::{PHONE, Site, click_id};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

/// Connections from one address before the next one of 127.0.0.0/8 is used. Each address has its own
/// ports.
const CONNECTIONS_PER_ADDRESS: u32 = 10_000;
/// Addresses in turn.
const ADDRESSES: u32 = 100;
/// First address of a process, and of a second one beside it.
const FIRST_ADDRESS: u8 = 1;
const OTHER_FIRST_ADDRESS: u8 = 101;
/// Longest time for a connection, beyond the server's request timeout.
const EXCHANGE_MAX: Duration = Duration::from_secs(40);
/// Bytes of a response that are looked at: all responses to the load are shorter.
const RESPONSE_BYTES_MAX: usize = 16 * 1_024;
/// Receive buffer of a slow reader.
const SLOW_BUFFER_BYTES: u32 = 4_096;
/// Pause between the bytes of a slow writer.
const SLOW_PAUSE: Duration = Duration::from_millis(500);

/// What the server did with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A response with this status.
    Response {
        /// HTTP status.
        status: u16,
        /// Whether the response says when to retry.
        has_retry_after: bool,
        /// The click id in a redirect.
        click: Option<String>,
    },
    /// The connection was refused or closed before anything was sent.
    NotConnected,
    /// The connection ended or timed out without a complete response.
    None,
}

/// Opens connections to a server.
#[derive(Debug)]
pub struct RawClient {
    server: SocketAddr,
    /// The last byte of the first local address.
    first: u8,
    opened: AtomicU32,
}

impl RawClient {
    /// Creates a client of the server at this URL.
    pub fn new(base: &str) -> Self {
        let server = base.trim_start_matches("http://").parse();
        Self {
            server: server.expect("an address with a port"),
            first: FIRST_ADDRESS,
            opened: AtomicU32::new(0),
        }
    }

    /// Creates a client that uses other local addresses, whose ports are free.
    pub fn of_other_addresses(base: &str) -> Self {
        Self {
            first: OTHER_FIRST_ADDRESS,
            ..Self::new(base)
        }
    }

    /// Opens a connection.
    pub async fn connect(&self) -> std::io::Result<TcpStream> {
        self.open(None).await
    }

    async fn open(&self, receive_buffer: Option<u32>) -> std::io::Result<TcpStream> {
        let number = self.opened.fetch_add(1, Ordering::Relaxed) / CONNECTIONS_PER_ADDRESS;
        let last = self.first + u8::try_from(number % ADDRESSES).unwrap_or(0);
        let socket = TcpSocket::new_v4()?;
        if let Some(bytes) = receive_buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        socket.bind(SocketAddr::new(
            IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)),
            0,
        ))?;
        socket.connect(self.server).await
    }

    /// Sends a request on a new connection and reads the response.
    pub async fn exchange(&self, request: &str) -> Answer {
        let connected = tokio::time::timeout(EXCHANGE_MAX, self.connect()).await;
        let Ok(Ok(mut stream)) = connected else {
            return Answer::NotConnected;
        };
        let exchanged = tokio::time::timeout(EXCHANGE_MAX, exchange(&mut stream, request)).await;
        exchanged.unwrap_or(Answer::None)
    }
}

/// Sends a request and reads the head of the response.
pub async fn exchange(stream: &mut TcpStream, request: &str) -> Answer {
    if stream.write_all(request.as_bytes()).await.is_err() {
        return Answer::None;
    }
    let mut bytes = Vec::new();
    loop {
        if let Some(answer) = read_answer(&String::from_utf8_lossy(&bytes)) {
            return answer;
        }
        match stream.read_buf(&mut bytes).await {
            Ok(count) if count > 0 && bytes.len() < RESPONSE_BYTES_MAX => {}
            _ => return Answer::None,
        }
    }
}

/// Reads a complete response.
fn read_answer(text: &str) -> Option<Answer> {
    let (original, body) = text.split_once("\r\n\r\n")?;
    let head = original.to_ascii_lowercase();
    let value = |name: &str| {
        let mut lines = head.lines();
        lines
            .find_map(|line| line.strip_prefix(name))
            .map(str::trim)
    };
    let length: usize = value("content-length:").map_or(Some(0), |text| text.parse().ok())?;
    if body.len() < length {
        return None;
    }
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer::Response {
        status,
        has_retry_after: value("retry-after:").is_some(),
        // Click ids are case-sensitive.
        click: original.lines().find_map(click_id).map(str::to_owned),
    })
}

/// Returns how many descriptors this process and the servers that it starts may have. Raises the soft
/// limit to the hard limit; only an administrator could raise that.
pub fn allowed_descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // If it fails, the soft limit counts.
    let _raised = setrlimit(Resource::Nofile, raised);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Returns a request for the whole event log.
pub fn export_request(site: &Site) -> String {
    format!(
        "GET {}/export?format=ndjson HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\n",
        site.app, site.key
    )
}

/// Returns a tap on the link to the website.
pub fn tap_request(site: &Site) -> String {
    format!(
        "GET /w/{}?gclid=E.C.P.1 HTTP/1.1\r\nhost: x\r\nuser-agent: {PHONE}\r\n\r\n",
        site.funnel
    )
}

/// Returns the head of a request whose body is long.
pub fn long_request(site: &Site) -> String {
    format!(
        "POST {}/web-events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\ncontent-length: 100000\r\n\r\n",
        site.app, site.key
    )
}

/// Opens connections that say nothing.
pub async fn hold_idle(client: &RawClient, count: u64) -> Vec<TcpStream> {
    let mut held = Vec::new();
    for _ in 0..count {
        match tokio::time::timeout(EXCHANGE_MAX, client.connect()).await {
            Ok(Ok(stream)) => held.push(stream),
            _ => break,
        }
    }
    held
}

/// Sends a request and reads nothing, with a small buffer. Keep the connection to keep it open.
pub async fn slow_reader(client: &RawClient, request: &str) -> std::io::Result<TcpStream> {
    let mut stream = client.open(Some(SLOW_BUFFER_BYTES)).await?;
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}

/// Sends the head of a request, then its body byte by byte until the server ends the connection.
pub async fn slow_writer(client: &RawClient, head: &str) -> std::io::Result<()> {
    let mut stream = client.connect().await?;
    stream.write_all(head.as_bytes()).await?;
    while stream.write_all(b" ").await.is_ok() {
        tokio::time::sleep(SLOW_PAUSE).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_read_when_it_is_complete() {
        let head =
            "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 2\r\n\r\n";
        assert_eq!(read_answer(head), None);
        let complete = Answer::Response {
            status: 503,
            has_retry_after: true,
            click: None,
        };
        assert_eq!(read_answer(&format!("{head}{{}}")), Some(complete));
        let redirect = "HTTP/1.1 302 Found\r\nLocation: https://x/?ar_click_id=Ab1&b=2\r\n\r\n";
        let redirected = Answer::Response {
            status: 302,
            has_retry_after: false,
            click: Some("Ab1".to_owned()),
        };
        assert_eq!(read_answer(redirect), Some(redirected));
    }
}
