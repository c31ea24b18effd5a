//! A TCP proxy between the store and the server that can freeze and cut connections.

use super::database::with_setting;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// On the wire, a commit is a simple query.
const COMMIT: &[u8] = b"commit\0";

pub(super) struct Proxy {
    /// URL that connects through the proxy.
    pub(super) url: String,
    frozen: watch::Sender<bool>,
    commits_to_cut: Arc<AtomicU32>,
}

impl Proxy {
    pub(super) async fn start(url: &str) -> Self {
        let config: Config = url.parse().expect("a URL");
        let Some(Host::Tcp(host)) = config.get_hosts().first().cloned() else {
            panic!("the server at TEST_DATABASE_URL must be reached over TCP");
        };
        let server = (host, config.get_ports().first().copied().unwrap_or(5432));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let settings = [
            Some(format!("user={}", config.get_user().expect("a user"))),
            config.get_dbname().map(|name| format!("dbname={name}")),
            config
                .get_password()
                .map(|password| format!("password={}", String::from_utf8_lossy(password))),
            config
                .get_options()
                .map(|options| format!("options={}", options.replace('=', "%3D"))),
        ];
        let url = settings.into_iter().flatten().fold(
            format!("postgres://127.0.0.1:{port}?sslmode=disable"),
            |url, setting| with_setting(&url, &setting),
        );
        let (frozen, is_frozen) = watch::channel(false);
        let commits_to_cut = Arc::new(AtomicU32::new(0));
        let to_cut = commits_to_cut.clone();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let server = server.clone();
                let (is_frozen, to_cut) = (is_frozen.clone(), to_cut.clone());
                tokio::spawn(async move {
                    let far = TcpStream::connect(server).await.expect("the server");
                    carry(near, far, is_frozen, to_cut).await;
                });
            }
        });
        Self {
            url,
            frozen,
            commits_to_cut,
        }
    }

    /// Stops forwarding in both directions without closing the connections, or resumes it.
    pub(super) fn freeze(&self, frozen: bool) {
        self.frozen.send_replace(frozen);
    }

    /// Lets the next commits reach the server, then drops their confirmations and the connections.
    pub(super) fn cut_commits(&self, count: u32) {
        self.commits_to_cut.store(count, Ordering::SeqCst);
    }
}

async fn carry(
    mut near: TcpStream,
    mut far: TcpStream,
    mut frozen: watch::Receiver<bool>,
    to_cut: Arc<AtomicU32>,
) {
    let (mut up, mut down) = (vec![0; 16_384], vec![0; 16_384]);
    loop {
        tokio::select! {
            read = near.read(&mut up) => {
                let Ok(count @ 1..) = read else { return };
                if frozen.wait_for(|frozen| !frozen).await.is_err() { return }
                let bytes = &up[..count];
                if far.write_all(bytes).await.is_err() { return }
                let is_commit = bytes.windows(COMMIT.len()).any(|window| window == COMMIT);
                let one_less = |count: u32| count.checked_sub(1);
                if is_commit
                    && to_cut.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok()
                {
                    // Reads the confirmation, which comes after the commit is stored, and drops it.
                    let _answer = far.read(&mut down).await;
                    return;
                }
            }
            read = far.read(&mut down) => {
                let Ok(count @ 1..) = read else { return };
                if frozen.wait_for(|frozen| !frozen).await.is_err() { return }
                if near.write_all(&down[..count]).await.is_err() { return }
            }
        }
    }
}
