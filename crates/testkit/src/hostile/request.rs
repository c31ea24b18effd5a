//! Reads requests as bytes, so that no HTTP library gets in the way of misbehaviour.

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Maximum size of a request: a batch of 500 events with every field is far below.
const REQUEST_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// A request.
#[derive(Debug)]
pub(super) struct HttpRequest {
    head: Vec<u8>,
    body: Vec<u8>,
}

impl HttpRequest {
    /// Returns head and body as text.
    pub(super) fn text(&self) -> String {
        let (head, body) = (&self.head, &self.body);
        format!(
            "{}{}",
            String::from_utf8_lossy(head),
            String::from_utf8_lossy(body)
        )
    }

    /// Returns the request with a header that ends the connection after the response.
    pub(super) fn for_one_exchange(&self) -> Vec<u8> {
        let lines = &self.head[..self.head.len() - 2];
        [lines, b"connection: close\r\n\r\n", &self.body].concat()
    }
}

/// Reads a request; `None` if the client closes the connection before it is complete.
pub(super) async fn read_request<S: AsyncRead + Unpin>(
    stream: &mut S,
) -> std::io::Result<Option<HttpRequest>> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = find(&bytes, b"\r\n\r\n") {
            let length = content_length(&bytes[..end]);
            let whole = end + 4 + length;
            if bytes.len() >= whole {
                let body = bytes.split_off(end + 4);
                return Ok(Some(HttpRequest { head: bytes, body }));
            }
        }
        let read = stream.read_buf(&mut bytes).await?;
        if read == 0 || bytes.len() > REQUEST_BYTES_MAX {
            return Ok(None);
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}

fn content_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let value = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"));
    value.map_or(0, |value| value.trim().parse().expect("a content length"))
}
