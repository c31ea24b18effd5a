//! The listener: connections in, requests to the router, deadlines on both.
//!
//! `axum::serve` installs no timer, so hyper's deadline for a request's head never fires there and a client
//! that says nothing holds its connection for ever. Here each connection has a deadline for the head (which
//! is also its idle limit) and one for a client that does not read its answer, and there are only so many connections at a time.

mod stalled_write;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use stalled_write::StalledWrite;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tower::ServiceExt as _;

/// Bytes of a request's head, its URL included.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Headers of a request.
const HEADERS_MAX: usize = 64;
/// The pause after a connection could not be accepted: without descriptors it would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a listener allows.
#[derive(Debug, Clone, Copy)]
pub struct ListenerSettings {
    /// Until a request's head has arrived; also how long a connection may be idle.
    pub header_timeout: Duration,
    /// How long a client may go without taking anything of its answer.
    pub write_timeout: Duration,
    /// Connections at a time.
    pub connections: usize,
    /// How long requests that were accepted may take to finish after a stop.
    pub drain: Duration,
}

/// Serves until told to stop, then finishes what it accepted. The socket and the end come from the caller,
/// so that tests own both.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    settings: ListenerSettings,
    stop: impl Future<Output = ()>,
) {
    let permits = Arc::new(Semaphore::new(settings.connections));
    let graceful = GracefulShutdown::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let permit = tokio::select! {
            () = &mut stop => break,
            permit = permits.clone().acquire_owned() => permit,
        };
        let Ok(permit) = permit else { break };
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let connection = graceful.watch(connection(stream, peer, router.clone(), settings));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(permit);
        });
    }
    drop(listener);
    tokio::select! {
        () = graceful.shutdown() => {}
        () = tokio::time::sleep(settings.drain) => {
            tracing::warn!("some requests did not finish in time and were cut off");
        }
    }
}

fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    settings: ListenerSettings,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> + Send {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "small answers may be held back");
    }
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        router.clone().oneshot(request)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(settings.header_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    let stream = StalledWrite::new(stream, settings.write_timeout);
    http.serve_connection(TokioIo::new(stream), service)
}
