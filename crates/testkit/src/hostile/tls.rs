//! TLS with certificates that are wrong in every usual way.
//!
//! The certificates in `certificates/` were made with OpenSSL. They are valid from 2020 until 2120,
//! except the expired one. All have the same key, which protects nothing.

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

const AUTHORITY: &[u8] = include_bytes!("certificates/authority.pem");
const KEY: &[u8] = include_bytes!("certificates/leaf_key.pem");
const VALID: &[u8] = include_bytes!("certificates/valid.pem");
const EXPIRED: &[u8] = include_bytes!("certificates/expired.pem");
const OTHER_NAME: &[u8] = include_bytes!("certificates/other_name.pem");
const SELF_SIGNED: &[u8] = include_bytes!("certificates/self_signed.pem");
/// How long a silent handshake lasts: longer than any client waits.
const SILENCE: Duration = Duration::from_mins(5);

/// Returns the certificate of the authority that signed the valid certificate for `localhost`, as
/// PEM. A server trusts it through `SSL_CERT_FILE`.
pub const fn test_authority() -> &'static [u8] {
    AUTHORITY
}

/// Returns a certificate and its key, as PEM. Without a fault, it is for `localhost` and signed by the
/// test authority.
pub const fn test_certificate(fault: Option<TlsFault>) -> [&'static [u8]; 2] {
    let certificate = match fault {
        Some(TlsFault::SelfSigned) => SELF_SIGNED,
        Some(TlsFault::Expired) => EXPIRED,
        Some(TlsFault::OtherName) => OTHER_NAME,
        _ => VALID,
    };
    [certificate, KEY]
}

/// What is wrong with TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsFault {
    /// The certificate is for another name.
    OtherName,
    /// The certificate has expired.
    Expired,
    /// The certificate is signed by its own key.
    SelfSigned,
    /// The server answers in plain text.
    PlainText,
    /// The server accepts the connection and says nothing.
    Silence,
    /// The server closes the connection at once.
    Closed,
}

impl TlsFault {
    /// All faults.
    pub const ALL: [Self; 6] = [
        Self::OtherName,
        Self::Expired,
        Self::SelfSigned,
        Self::PlainText,
        Self::Silence,
        Self::Closed,
    ];
}

/// The TLS side of a proxy.
#[derive(Debug, Default)]
pub(super) struct TlsFront {
    fault: Mutex<Option<TlsFault>>,
    failures: AtomicU64,
}

impl TlsFront {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn set(&self, fault: Option<TlsFault>) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    pub(super) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    fn current(&self) -> Option<TlsFault> {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts a connection. `None` if the handshake fails, as the fault wants or because the client
    /// refuses the certificate.
    pub(super) async fn accept(&self, mut stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        let certificate = match self.current() {
            None => VALID,
            Some(TlsFault::OtherName) => OTHER_NAME,
            Some(TlsFault::Expired) => EXPIRED,
            Some(TlsFault::SelfSigned) => SELF_SIGNED,
            Some(fault @ (TlsFault::PlainText | TlsFault::Silence | TlsFault::Closed)) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                if fault == TlsFault::PlainText {
                    let _may_be_closed = stream
                        .write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
                        .await;
                }
                if fault == TlsFault::Silence {
                    tokio::time::sleep(SILENCE).await;
                }
                return None;
            }
        };
        let accepted = acceptor(certificate).accept(stream).await.ok();
        if accepted.is_none() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        accepted
    }
}

fn acceptor(certificate: &[u8]) -> TlsAcceptor {
    let chain = CertificateDer::from_pem_slice(certificate).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(KEY).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("TLS 1.2 and 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)
        .expect("a key for the certificate");
    TlsAcceptor::from(Arc::new(config))
}
