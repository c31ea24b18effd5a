//! Listener with its own accept loop, because resetting a connection requires access to the socket.

use crate::connection::{Connection, ResettableStream};
use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tower::ServiceExt as _;

/// Pause after a failed accept. Without free descriptors, the next accept would fail immediately.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Timeout for request headers; also the idle timeout of a connection.
const HEAD_MAX: Duration = Duration::from_mins(1);
/// Time that requests get to finish at shutdown. Hanging requests are cut off.
const DRAIN: Duration = Duration::from_millis(500);

/// Serves until `stop` completes.
pub(crate) async fn serve(listener: TcpListener, router: Router, stop: impl Future<Output = ()>) {
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            // Remove finished connections.
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let connection = graceful.watch(connection(stream, router.clone()));
                connections.spawn(async move {
                    if let Err(error) = connection.await {
                        tracing::debug!(%error, "connection ended early");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "failed to accept connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    tokio::select! {
        () = graceful.shutdown() => {}
        () = tokio::time::sleep(DRAIN) => connections.abort_all(),
    }
}

fn connection(
    stream: TcpStream,
    router: Router,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> + Send {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "failed to set TCP_NODELAY");
    }
    let handle = Connection::default();
    let stream = ResettableStream::new(stream, handle.clone());
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(handle.clone());
        router.clone().oneshot(request)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_MAX);
    http.serve_connection(TokioIo::new(stream), service)
}
