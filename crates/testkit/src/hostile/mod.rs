//! A hostile network: a proxy in front of a simulator that misbehaves for chosen requests, on plain
//! connections and with TLS. When it is healed, it passes every request on.

mod misbehavior;
mod request;
mod tls;

pub use misbehavior::Misbehavior;
pub use tls::{TlsFault, test_authority, test_certificate};

use misbehavior::{Counter, misbehave};
use request::{HttpRequest, read_request};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tls::TlsFront;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Response to a request that no simulator is there for.
const NOT_FOUND: &[u8] =
    b"HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// A proxy that misbehaves.
#[derive(Debug)]
pub struct HostileProxy {
    /// Address of the plain listener.
    pub address: SocketAddr,
    /// Address of the listener with TLS.
    pub tls_address: SocketAddr,
    shared: Arc<Shared>,
    running: [tokio::task::JoinHandle<()>; 2],
}

/// What both listeners and all connections share.
#[derive(Debug)]
struct Shared {
    upstream: Mutex<Option<SocketAddr>>,
    rules: Mutex<Vec<Rule>>,
    answers: Mutex<Vec<HealthyAnswer>>,
    tls: TlsFront,
}

/// A rule that chooses requests.
#[derive(Debug, Clone)]
struct Rule {
    name: String,
    needles: Vec<String>,
    behavior: Misbehavior,
    processes: bool,
    remaining: u64,
    counter: Arc<Counter>,
}

/// A fixed answer to healthy requests, for services without a simulator.
#[derive(Debug)]
struct HealthyAnswer {
    needle: String,
    response: Vec<u8>,
    requests: Vec<String>,
}

impl Shared {
    fn rules(&self) -> MutexGuard<'_, Vec<Rule>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the first rule whose texts all occur in the request, once.
    fn take_rule(&self, request: &HttpRequest) -> Option<Rule> {
        let text = request.text();
        let mut rules = self.rules();
        let mut chosen = rules.iter_mut().filter(|rule| rule.remaining > 0);
        let rule = chosen.find(|rule| rule.needles.iter().all(|one| text.contains(one)))?;
        rule.remaining -= 1;
        Some(rule.clone())
    }

    /// Returns the fixed answer to a request, if there is one.
    fn answer(&self, request: &HttpRequest) -> Option<Vec<u8>> {
        let text = request.text();
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = answers.iter_mut().find(|one| text.contains(&one.needle))?;
        answer.requests.push(text);
        Some(answer.response.clone())
    }

    /// Sends a request to the simulator, unless it has a fixed answer. Returns the complete response.
    async fn forward(&self, request: &HttpRequest) -> std::io::Result<Vec<u8>> {
        if let Some(response) = self.answer(request) {
            return Ok(response);
        }
        let upstream = *self.upstream.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(upstream) = upstream else {
            return Ok(NOT_FOUND.to_vec());
        };
        let mut stream = TcpStream::connect(upstream).await?;
        stream.write_all(&request.for_one_exchange()).await?;
        let mut response = Vec::new();
        stream.read_to_end(&mut response).await?;
        Ok(response)
    }

    /// Answers one request on a connection.
    async fn serve<S: AsyncRead + AsyncWrite + Unpin>(&self, mut stream: S) -> std::io::Result<()> {
        let Some(request) = read_request(&mut stream).await? else {
            return Ok(());
        };
        let Some(rule) = self.take_rule(&request) else {
            let response = self.forward(&request).await?;
            stream.write_all(&response).await?;
            return stream.shutdown().await;
        };
        rule.counter.add_request();
        if rule.processes {
            self.forward(&request).await?;
        }
        misbehave(rule.behavior, &mut stream, &rule.counter, &request).await
    }
}

impl HostileProxy {
    /// Starts a proxy without rules. Without `upstream`, healthy requests get 404.
    pub async fn start(upstream: Option<SocketAddr>) -> Self {
        let plain = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let tls = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = plain.local_addr().expect("local address");
        let tls_address = tls.local_addr().expect("local address");
        let shared = Arc::new(Shared {
            upstream: Mutex::new(upstream),
            rules: Mutex::default(),
            answers: Mutex::default(),
            tls: TlsFront::new(),
        });
        let running = [
            tokio::spawn(accept(plain, shared.clone(), false)),
            tokio::spawn(accept(tls, shared.clone(), true)),
        ];
        Self {
            address,
            tls_address,
            shared,
            running,
        }
    }

    /// Sets where healthy requests go.
    pub fn set_upstream(&self, upstream: SocketAddr) {
        let mut current = self
            .shared
            .upstream
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *current = Some(upstream);
    }

    /// Returns the base URL of the plain listener.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the base URL of the listener with TLS, with the name in its valid certificate.
    pub fn tls_base_url(&self) -> String {
        format!("https://localhost:{}", self.tls_address.port())
    }

    /// Misbehaves for requests that contain all `needles`. Earlier rules take precedence. With
    /// `processes`, the simulator gets the request first, so that only the response is lost.
    pub fn misbehave(&self, name: &str, needles: &[&str], behavior: Misbehavior, processes: bool) {
        self.misbehave_times(name, needles, behavior, processes, u64::MAX);
    }

    /// Does the same for this number of requests.
    pub fn misbehave_times(
        &self,
        name: &str,
        needles: &[&str],
        behavior: Misbehavior,
        processes: bool,
        times: u64,
    ) {
        if matches!(behavior, Misbehavior::GzipBomb(_)) {
            misbehavior::gzip_bomb();
        }
        self.shared.rules().push(Rule {
            name: name.to_owned(),
            needles: needles.iter().map(|&one| one.to_owned()).collect(),
            behavior,
            processes,
            remaining: times,
            counter: Arc::default(),
        });
    }

    /// Answers healthy requests that contain `needle` with this status and body.
    pub fn answer(&self, needle: &str, status: u16, body: &str) {
        let length = body.len();
        let response = format!(
            "HTTP/1.1 {status} Healthy\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        let mut answers = self
            .shared
            .answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        answers.push(HealthyAnswer {
            needle: needle.to_owned(),
            response: response.into_bytes(),
            requests: Vec::new(),
        });
    }

    /// Returns the requests with this fixed answer, head and body.
    pub fn answered(&self, needle: &str) -> Vec<String> {
        let answers = self
            .shared
            .answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let of_needle = answers.iter().filter(|one| one.needle == needle);
        of_needle.flat_map(|one| one.requests.clone()).collect()
    }

    /// Fails every TLS handshake in this way; `None` heals it.
    pub fn fail_tls(&self, fault: Option<TlsFault>) {
        self.shared.tls.set(fault);
    }

    /// Ends all misbehaviour of later requests. Responses in progress go on.
    pub fn heal(&self) {
        for rule in self.shared.rules().iter_mut() {
            rule.remaining = 0;
        }
        self.fail_tls(None);
    }

    /// Returns how many requests met the rule.
    pub fn requests(&self, name: &str) -> u64 {
        self.sum(name, Counter::requests)
    }

    /// Returns how many bytes the clients of the rule's requests took, at most: the buffers of the
    /// sockets count as well.
    pub fn bytes_taken(&self, name: &str) -> u64 {
        self.sum(name, Counter::bytes)
    }

    /// Returns how many connections failed in the TLS handshake.
    pub fn failed_handshakes(&self) -> u64 {
        self.shared.tls.failures()
    }

    fn sum(&self, name: &str, value: fn(&Counter) -> u64) -> u64 {
        let rules = self.shared.rules();
        let named = rules.iter().filter(|rule| rule.name == name);
        named.map(|rule| value(&rule.counter)).sum()
    }
}

impl Drop for HostileProxy {
    fn drop(&mut self) {
        for listener in &self.running {
            listener.abort();
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, is_tls: bool) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = shared.clone();
        tokio::spawn(async move {
            // The client may close the connection at any time.
            let _ended = if is_tls {
                match shared.tls.accept(stream).await {
                    Some(stream) => shared.serve(stream).await,
                    None => Ok(()),
                }
            } else {
                shared.serve(stream).await
            };
        });
    }
}
