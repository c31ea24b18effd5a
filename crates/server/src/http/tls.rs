//! TLS with a certificate that may be replaced while the server runs.

use crate::metrics;
use crate::watched_file::{FileState, observe, read_file};
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tributary_domain::vocabulary::certificate::expires_at;
use tributary_domain::vocabulary::time::Timestamp;

/// Far more than any certificate chain or key needs.
const PEM_BYTES_MAX: u64 = 1024 * 1024;
/// A handshake is two exchanges of small messages.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);

/// The certificate and its key, read from two files.
pub struct Certificates {
    certificate: PathBuf,
    key: PathBuf,
    /// State of both files when they were last read.
    last_state: Mutex<[FileState; 2]>,
    current: Arc<CurrentCertificate>,
    acceptor: TlsAcceptor,
}

/// The certificate for new connections.
#[derive(Debug)]
struct CurrentCertificate(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let current = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Some(current.clone())
    }
}

impl Certificates {
    /// Reads both files, or says which one is wrong. Blocks.
    pub fn load(certificate: &Path, key: &Path, now: Timestamp) -> anyhow::Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let state = [observe(certificate), observe(key)];
        let pair = read_pair(certificate, key, &provider).map_err(anyhow::Error::msg)?;
        let expiry = expiry_of(&pair);
        let current = Arc::new(CurrentCertificate(RwLock::new(Arc::new(pair))));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(current.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        metrics::set_certificate(expiry, now);
        metrics::set_no_failed_certificate();
        Ok(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            last_state: Mutex::new(state),
            current,
            acceptor: TlsAcceptor::from(Arc::new(config)),
        })
    }

    /// Reads the files if one of them changed. A pair that is not valid, for example because only one
    /// file has been replaced yet, is logged once, and the previous certificate stays in use. Blocks.
    pub fn refresh(&self, now: Timestamp) {
        let mut last_state = self
            .last_state
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Observed before reading, so that a write in between counts as a change next time.
        let state = [observe(&self.certificate), observe(&self.key)];
        if *last_state == state {
            return;
        }
        *last_state = state;
        match read_pair(
            &self.certificate,
            &self.key,
            self.acceptor.config().crypto_provider(),
        ) {
            Ok(pair) => {
                metrics::set_certificate(expiry_of(&pair), now);
                let mut current = self
                    .current
                    .0
                    .write()
                    .unwrap_or_else(PoisonError::into_inner);
                *current = Arc::new(pair);
                tracing::info!("loaded the new TLS certificate");
            }
            Err(error) => {
                metrics::set_failed_certificate(now);
                tracing::warn!(
                    error,
                    "cannot use the new TLS certificate; keeping the previous one"
                );
            }
        }
    }

    /// Completes the handshake. Returns `None` if the client fails or is too slow.
    pub(super) async fn accept(&self, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        match tokio::time::timeout(HANDSHAKE_MAX, self.acceptor.accept(stream)).await {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!(%error, "TLS handshake failed");
                None
            }
            Err(_elapsed) => {
                tracing::debug!("TLS handshake timed out");
                None
            }
        }
    }
}

/// Returns when the server's own certificate expires, which is the first of the chain.
fn expiry_of(pair: &CertifiedKey) -> Option<Timestamp> {
    expires_at(pair.cert.first()?)
}

/// Reads a certificate chain and its key, or returns what is wrong with which setting. Parts of the
/// key never appear in the message.
fn read_pair(
    certificate: &Path,
    key: &Path,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, String> {
    let read = |setting: &str, path: &Path| {
        read_file(path, PEM_BYTES_MAX)
            .map_err(|error| format!("{setting}: cannot read {}: {error}", path.display()))
    };
    let chain = read("tls.certificate", certificate)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&chain).collect();
    let chain = chain
        .ok()
        .filter(|chain| !chain.is_empty())
        .ok_or_else(|| {
            format!(
                "tls.certificate: {} contains no certificate in PEM",
                certificate.display()
            )
        })?;
    let secret = PrivateKeyDer::from_pem_slice(&read("tls.key", key)?)
        .map_err(|_| format!("tls.key: {} contains no private key in PEM", key.display()))?;
    CertifiedKey::from_der(chain, secret, provider).map_err(|_| {
        format!(
            "tls.key: the key in {} does not belong to the certificate in {}, or is of an \
             unsupported kind; use RSA, ECDSA (P-256, P-384) or Ed25519",
            key.display(),
            certificate.display()
        )
    })
}
