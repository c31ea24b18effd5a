//! HTTP listener with timeouts and a connection limit.
//!
//! `axum::serve` sets no timer, so hyper's header timeout never fires there, and a silent client
//! would keep its connection forever. Here each connection has a timeout for request headers (also
//! its idle timeout) and a timeout for clients that do not read the response.

mod address_share;
mod header_timer;
mod redirect;
mod stalled_write;
mod tls;

pub use redirect::redirect_router;
pub use tls::Certificates;

use address_share::AddressConnections;
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use header_timer::HeaderTimer;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::{GracefulConnection, GracefulShutdown, Watcher};
use stalled_write::StalledWrite;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::unconstrained;
use tower::Service as _;

/// Maximum size of a request head, including the URL.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of request headers.
const HEADERS_MAX: usize = 64;
/// Pause after a failed accept. Without free descriptors, the next accept would fail immediately.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Connections that may wait in the kernel. Beyond it, the kernel drops what clients send, and they wait
/// seconds until they send it again. Linux limits the number to `net.core.somaxconn`, usually 4,096.
const BACKLOG: u32 = 4_096;

/// Limits for a listener.
#[derive(Clone)]
pub struct ListenerSettings {
    /// Timeout for request headers; also the idle timeout of a connection.
    pub header_timeout: Duration,
    /// How long a client may pause while it reads its response.
    pub write_timeout: Duration,
    /// Maximum number of concurrent connections.
    pub connections: usize,
    /// Maximum number of concurrent connections from one address; 0 is unlimited.
    pub connections_per_address: usize,
    /// Returns whether an address is a trusted proxy, which may open any number of connections.
    pub is_trusted_proxy: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
    /// Time that accepted requests get to finish at shutdown.
    pub drain: Duration,
    /// Certificate for TLS; `None` for plain HTTP.
    pub certificates: Option<Arc<Certificates>>,
}

/// Listens on an address.
pub fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // The server may start again while connections of its predecessor are in the kernel.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves until `stop` completes, then drains requests. The caller provides the socket and `stop`,
/// so that tests can control both.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    settings: ListenerSettings,
    stop: impl Future<Output = ()>,
) {
    let graceful = GracefulShutdown::new();
    // Under overload, thousands of tasks run before this one runs again. Without the runtime's limit
    // per turn, one turn accepts all connections that wait, and the backlog does not overflow.
    unconstrained(accept(&listener, &router, &settings, &graceful, stop)).await;
    drop(listener);
    tokio::select! {
        () = graceful.shutdown() => {}
        () = tokio::time::sleep(settings.drain) => {
            tracing::warn!("drain timeout reached; dropping unfinished requests");
        }
    }
}

/// Accepts connections until `stop` completes.
async fn accept(
    listener: &TcpListener,
    router: &Router,
    settings: &ListenerSettings,
    graceful: &GracefulShutdown,
    stop: impl Future<Output = ()>,
) {
    let permits = Arc::new(Semaphore::new(settings.connections));
    let addresses = AddressConnections::new(settings.connections_per_address);
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
                tracing::warn!(%error, "failed to accept connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let address = peer.ip().to_canonical();
        let share = if (settings.is_trusted_proxy)(address) {
            None
        } else {
            let Some(share) = addresses.take(address) else {
                reject(stream, settings.certificates.is_some());
                continue;
            };
            Some(share)
        };
        let (router, settings, watcher) = (router.clone(), settings.clone(), graceful.watcher());
        tokio::spawn(async move {
            if let Err(error) = serve_connection(stream, peer, router, &settings, watcher).await {
                tracing::debug!(%error, "connection ended early");
            }
            drop((permit, share));
        });
    }
}

/// Response to a connection above its address's limit.
const TOO_MANY_CONNECTIONS: &[u8] = b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 5\r\n\
    connection: close\r\ncontent-length: 0\r\n\r\n";

/// Rejects a connection without waiting for its request. Writes to the socket directly, because the
/// runtime does not know yet that a new socket is writable. The response fits into the socket's
/// empty buffer, so the write does not block. A TLS client would not understand the response.
fn reject(stream: TcpStream, speaks_tls: bool) {
    crate::metrics::count_rejected_connection();
    if speaks_tls {
        return;
    }
    let written = stream
        .into_std()
        .and_then(|mut socket| socket.write_all(TOO_MANY_CONNECTIONS));
    if let Err(error) = written {
        tracing::debug!(%error, "failed to reject a connection");
    }
}

/// Serves one connection to its end, after the TLS handshake if there is a certificate.
async fn serve_connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    settings: &ListenerSettings,
    watcher: Watcher,
) -> hyper::Result<()> {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "failed to set TCP_NODELAY");
    }
    match &settings.certificates {
        None => {
            watcher
                .watch(connection(stream, peer, router, settings))
                .await
        }
        Some(certificates) => match certificates.accept(stream).await {
            Some(stream) => {
                watcher
                    .watch(connection(stream, peer, router, settings))
                    .await
            }
            None => Ok(()),
        },
    }
}

fn connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: SocketAddr,
    router: Router,
    settings: &ListenerSettings,
) -> impl GracefulConnection<Error = hyper::Error> + Send + use<S> {
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        // A router is always ready.
        router.clone().call(request)
    });
    let mut http = http1::Builder::new();
    http.timer(HeaderTimer::new(settings.header_timeout))
        .header_read_timeout(settings.header_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    let stream = StalledWrite::new(stream, settings.write_timeout);
    http.serve_connection(TokioIo::new(stream), service)
}
