//! A connection that a handler can have reset.
//!
//! hyper hands handlers no socket. So the handle only raises a flag, and the stream, which hyper polls as soon as
//! there is an answer to write, fails there and closes with a reset instead of a farewell.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Goes into a request's extensions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection(Arc<AtomicBool>);

impl Connection {
    /// Nothing more is written; the connection ends with a reset.
    pub(crate) fn reset(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The stream under the connection.
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
        // Without lingering, closing sends a reset.
        self.stream.set_zero_linger()?;
        Err(io::Error::new(
            io::ErrorKind::ConnectionReset,
            "reset on demand",
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
