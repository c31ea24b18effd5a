//! The ways in which a network misbehaves.

use super::request::HttpRequest;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

/// Bytes offered by an endless response.
const ENDLESS_BYTES: usize = 1 << 30;
/// Bytes written at a time.
const CHUNK_BYTES: usize = 64 * 1_024;
/// Pause between the bytes of a trickling response.
const TRICKLE_PAUSE: Duration = Duration::from_secs(1);
/// Interim responses written at a time, and the pause between. Clients read all of them until their
/// timeout; without a pause that would take a whole core from the tests beside this one.
const INTERIM_AT_ONCE: usize = 100;
const INTERIM_PAUSE: Duration = Duration::from_millis(20);
/// How long a silent connection stays open: longer than any client waits.
const SILENCE: Duration = Duration::from_mins(5);
/// Decompressed size of the gzip bomb.
const BOMB_BYTES: usize = 16 * 1_024 * 1_024;

/// A way to misbehave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misbehavior {
    /// Reads the request and never answers.
    Silence,
    /// Sends a byte of the head per second.
    TricklingHead,
    /// Sends a complete head, then a byte of the body per second.
    TricklingBody,
    /// Sends headers without end.
    EndlessHead,
    /// Sends interim responses (100 Continue) without end.
    EndlessInterim,
    /// Sends a body without end, with this status.
    EndlessBody(u16),
    /// Announces a body of 1 GiB with this status, and sends it.
    HugeBody(u16),
    /// Sends a small gzip body that is large when decompressed, with this status.
    GzipBomb(u16),
    /// Sends bytes that are not HTTP.
    Garbage,
    /// Sends a chunked body whose chunk size is not a number.
    BrokenChunks,
    /// Redirects to this URL, with what the request contained in the query.
    Redirect(u16, String),
    /// Redirects to the requested URL.
    RedirectLoop(u16),
    /// Resets the connection in the middle of the body.
    Reset,
}

/// Counts what a rule did.
#[derive(Debug, Default)]
pub(super) struct Counter {
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl Counter {
    pub(super) fn add_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// A stream that counts what is written.
struct Counted<'a, S> {
    stream: &'a mut S,
    counter: &'a Counter,
}

impl<S: AsyncWrite + Unpin> Counted<'_, S> {
    async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await?;
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.counter.bytes.fetch_add(length, Ordering::Relaxed);
        Ok(())
    }

    async fn trickle(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        for byte in bytes {
            self.write(&[*byte]).await?;
            tokio::time::sleep(TRICKLE_PAUSE).await;
        }
        Ok(())
    }

    /// Repeats these bytes up to 1 GiB.
    async fn repeat(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let chunk = bytes.repeat(CHUNK_BYTES / bytes.len());
        for _ in 0..ENDLESS_BYTES / chunk.len() {
            self.write(&chunk).await?;
        }
        Ok(())
    }
}

fn head(status: u16, headers: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Hostile\r\ncontent-type: application/json\r\n{headers}\r\n\r\n")
        .into_bytes()
}

/// Answers a request. Every answer that has room for it repeats the request, with its secrets.
pub(super) async fn misbehave<S: AsyncWrite + Unpin>(
    behavior: Misbehavior,
    stream: &mut S,
    counter: &Counter,
    request: &HttpRequest,
) -> std::io::Result<()> {
    let mut out = Counted { stream, counter };
    let echo = request.text();
    match behavior {
        Misbehavior::Silence => tokio::time::sleep(SILENCE).await,
        Misbehavior::TricklingHead => {
            let slow = format!("HTTP/1.1 200 OK\r\nx-echo: {}\r\n", one_line(&echo));
            out.trickle(slow.as_bytes()).await?;
        }
        Misbehavior::TricklingBody => {
            out.write(&head(200, "content-length: 100000")).await?;
            out.trickle(echo.as_bytes()).await?;
            tokio::time::sleep(SILENCE).await;
        }
        Misbehavior::EndlessHead => {
            out.write(b"HTTP/1.1 200 OK\r\n").await?;
            out.repeat(b"x-again: and again\r\n").await?;
        }
        Misbehavior::EndlessInterim => loop {
            out.write(&b"HTTP/1.1 100 Continue\r\n\r\n".repeat(INTERIM_AT_ONCE))
                .await?;
            tokio::time::sleep(INTERIM_PAUSE).await;
        },
        Misbehavior::EndlessBody(status) => {
            out.write(&head(status, "connection: close")).await?;
            out.write(echo.as_bytes()).await?;
            out.repeat(b"{\"error\": {\"message\": \"again\"}}").await?;
        }
        Misbehavior::HugeBody(status) => {
            let length = format!("content-length: {ENDLESS_BYTES}");
            out.write(&head(status, &length)).await?;
            out.repeat(b" ").await?;
        }
        Misbehavior::GzipBomb(status) => {
            let body = gzip_bomb();
            let headers = format!("content-encoding: gzip\r\ncontent-length: {}", body.len());
            out.write(&head(status, &headers)).await?;
            out.write(body).await?;
        }
        Misbehavior::Garbage => {
            out.write(b"\x16\x03\x01\x00\xff not HTTP at all\r\n\r\n")
                .await?;
            out.write(echo.as_bytes()).await?;
        }
        Misbehavior::BrokenChunks => {
            out.write(&head(200, "transfer-encoding: chunked")).await?;
            out.write(b"5\r\n{\"a\":\r\nnot a number\r\n").await?;
            out.write(echo.as_bytes()).await?;
        }
        Misbehavior::Redirect(status, url) => {
            let location = format!(
                "location: {url}?leak={}\r\ncontent-length: 0",
                one_line(&echo)
            );
            out.write(&head(status, &location)).await?;
        }
        Misbehavior::RedirectLoop(status) => {
            let path = echo.split(' ').nth(1).unwrap_or("/").to_owned();
            let location = format!("location: {path}\r\ncontent-length: 0");
            out.write(&head(status, &location)).await?;
        }
        Misbehavior::Reset => {
            out.write(&head(200, "content-length: 100000")).await?;
            out.write(echo.as_bytes()).await?;
            // Dropping the stream before the announced length ends the response early.
        }
    }
    out.stream.shutdown().await
}

/// Returns the text as it may appear in a header.
fn one_line(text: &str) -> String {
    let is_plain = |one: &char| one.is_ascii_alphanumeric() || "._-/:".contains(*one);
    text.chars().filter(is_plain).take(2_000).collect()
}

/// Returns a large body of spaces, compressed. It is compressed once, because that takes a while.
pub(super) fn gzip_bomb() -> &'static [u8] {
    static BOMB: OnceLock<Vec<u8>> = OnceLock::new();
    BOMB.get_or_init(|| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let block = vec![b' '; CHUNK_BYTES];
        for _ in 0..BOMB_BYTES / CHUNK_BYTES {
            encoder.write_all(&block).expect("write to memory");
        }
        encoder.finish().expect("write to memory")
    })
}
