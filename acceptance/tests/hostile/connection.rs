//! A client that sends any bytes and reads HTTP/1.1 responses from a connection that it keeps open.

use super::requests::{AfterSending, HostileRequest};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Longest time for one request. Much longer than any response takes, because tests run in parallel.
const PATIENCE: Duration = Duration::from_mins(1);
/// Longest time to wait for a request whose framing leaves the server waiting as well.
const SHORT_PATIENCE: Duration = Duration::from_secs(2);

/// A response without its body.
pub(super) struct ResponseHead {
    pub(super) status: u16,
    /// The head, for error messages.
    pub(super) text: String,
}

/// A connection that reconnects when the server closes it.
pub(super) struct HostileConnection {
    address: SocketAddr,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
}

impl HostileConnection {
    pub(super) const fn new(address: SocketAddr) -> Self {
        Self {
            address,
            stream: None,
            buffer: Vec::new(),
        }
    }

    /// Sends a request. Returns the response, or `None` if the server closed the connection without
    /// one.
    pub(super) async fn send(&mut self, request: &HostileRequest) -> Option<ResponseHead> {
        let patience = match request.after {
            AfterSending::Wait => PATIENCE,
            AfterSending::WaitForEither | AfterSending::Leave => SHORT_PATIENCE,
        };
        let is_reused = self.stream.is_some();
        let mut response = self.exchange(request, patience).await;
        if response.is_none() && is_reused && request.after == AfterSending::Wait {
            // The server may have closed the connection after the previous response.
            response = self.exchange(request, patience).await;
        }
        if request.after != AfterSending::Wait {
            self.stream = None;
        }
        response
    }

    async fn exchange(
        &mut self,
        request: &HostileRequest,
        patience: Duration,
    ) -> Option<ResponseHead> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(self.address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            self.stream = Some(stream);
            self.buffer.clear();
        }
        let exchange = async {
            let stream = self.stream.as_mut()?;
            // The server may respond and close before it has read everything.
            let sent = stream.write_all(&request.bytes).await;
            if request.after == AfterSending::Leave {
                return None;
            }
            let response = self.read_response(request.is_head).await;
            response.filter(|_| sent.is_ok() || request.after != AfterSending::Wait)
        };
        let response = tokio::time::timeout(patience, exchange).await;
        if let Ok(Some(response)) = response {
            return Some(response);
        }
        let timed_out = response.is_err();
        self.stream = None;
        assert!(
            !timed_out || request.after != AfterSending::Wait,
            "no response within {patience:?} to {}",
            String::from_utf8_lossy(&request.bytes[..request.bytes.len().min(2_000)])
        );
        None
    }

    async fn fill(&mut self) -> Option<()> {
        let stream = self.stream.as_mut()?;
        match stream.read_buf(&mut self.buffer).await {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(()),
        }
    }

    async fn read_response(&mut self, is_head: bool) -> Option<ResponseHead> {
        let end = loop {
            let end = self.buffer.windows(4).position(|four| four == b"\r\n\r\n");
            match end {
                Some(end) => break end + 4,
                None => self.fill().await?,
            }
        };
        let text = String::from_utf8_lossy(&self.buffer[..end]).to_lowercase();
        self.buffer.drain(..end);
        let status: u16 = text.get(9..12)?.parse().ok()?;
        let value = |name: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        let has_body = !is_head && status >= 200 && status != 204 && status != 304;
        if has_body && value("transfer-encoding").is_some() {
            self.skip_chunks().await?;
        } else if has_body {
            let length: usize =
                value("content-length").map_or(Some(0), |text| text.parse().ok())?;
            while self.buffer.len() < length {
                self.fill().await?;
            }
            self.buffer.drain(..length);
        }
        if value("connection") == Some("close") {
            self.stream = None;
        }
        Some(ResponseHead { status, text })
    }

    async fn skip_chunks(&mut self) -> Option<()> {
        loop {
            let end = loop {
                match self.buffer.windows(2).position(|two| two == b"\r\n") {
                    Some(end) => break end,
                    None => self.fill().await?,
                }
            };
            let size = std::str::from_utf8(&self.buffer[..end]).ok()?;
            let size = usize::from_str_radix(size, 16).ok()?;
            let chunk = end + 2 + size + 2;
            while self.buffer.len() < chunk {
                self.fill().await?;
            }
            self.buffer.drain(..chunk);
            if size == 0 {
                return Some(());
            }
        }
    }
}
