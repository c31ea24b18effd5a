//! A connection that a handler can reset.
//!
//! hyper gives handlers no access to the socket. So the handler sets a flag. When hyper then writes
//! the response to the stream, the stream fails and closes with a TCP reset.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Handle that is stored in a request's extensions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection(Arc<AtomicBool>);

impl Connection {
    /// Resets the connection instead of writing a response.
    pub(crate) fn reset(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A connection's stream.
pub(crate) struct ResettableStream {
    stream: TcpStream,
    handle: Connection,
}

impl ResettableStream {
    pub(crate) fn new(stream: TcpStream, handle: Connection) -> Self {
        Self { stream, handle }
    }

    fn check(&self) -> io::Result<()> {
        if !self.handle.0.load(Ordering::Acquire) {
            return Ok(());
        }
        // With zero linger, closing sends a reset.
        self.stream.set_zero_linger()?;
        Err(io::Error::new(
            io::ErrorKind::ConnectionReset,
            "reset by fault injection",
        ))
    }
}

impl AsyncRead for ResettableStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for ResettableStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
