//! TLS for connections to the database.
//!
//! `sslmode` has its usual meaning with one exception: `require` verifies the certificate, like
//! `verify-full`. With `prefer`, the default, the connection is encrypted if the server supports
//! TLS, but the certificate is not verified. Verifying it would not help: an attacker who can forge
//! the certificate can also pretend that the server has no TLS. The certificate is not even read,
//! because the library rejects certificates of version 1, which some servers create for themselves
//! (Citus does).

use crate::pool::PostgresOpenError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::Arc;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Builds the TLS connector for a mode.
pub(crate) fn connector(mode: SslMode) -> Result<MakeRustlsConnect, PostgresOpenError> {
    client_config(mode).map(MakeRustlsConnect::new)
}

fn client_config(mode: SslMode) -> Result<ClientConfig, PostgresOpenError> {
    // Explicit, so that the process needs no default provider.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| PostgresOpenError::Tls(error.to_string()))?;
    let config = if mode == SslMode::Require {
        builder
            .with_root_certificates(system_roots()?)
            .with_no_client_auth()
    } else {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth()
    };
    Ok(config)
}

fn system_roots() -> Result<RootCertStore, PostgresOpenError> {
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "failed to read some system certificates");
    }
    let mut roots = RootCertStore::empty();
    let (added, _unusable) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        return Err(PostgresOpenError::Tls(
            "no root certificates found; install ca-certificates, or set SSL_CERT_FILE to a file \
             with them"
                .to_owned(),
        ));
    }
    Ok(roots)
}

/// Accepts any certificate and signature: encryption without authentication of the server. A valid
/// signature would only prove that the server has the key of a certificate that anyone can create.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::server::{ClientHello, ResolvesServerCert};
    use rustls::sign::{CertifiedKey, Signer, SigningKey};
    use rustls::version::{TLS12, TLS13};
    use rustls::{
        ClientConnection, ServerConfig, ServerConnection, SignatureAlgorithm,
        SupportedProtocolVersion,
    };

    /// A server whose certificate has version 1.
    #[derive(Debug)]
    struct Version1;

    impl ResolvesServerCert for Version1 {
        fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
            let certificate = include_bytes!("tests/version_1_certificate.der");
            let chain = vec![CertificateDer::from(certificate.as_slice())];
            Some(Arc::new(CertifiedKey::new(chain, Arc::new(Self))))
        }
    }

    impl SigningKey for Version1 {
        fn choose_scheme(&self, _offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
            Some(Box::new(Self))
        }

        fn algorithm(&self) -> SignatureAlgorithm {
            SignatureAlgorithm::ECDSA
        }
    }

    impl Signer for Version1 {
        fn sign(&self, _message: &[u8]) -> Result<Vec<u8>, rustls::Error> {
            Ok(b"signature".to_vec())
        }

        fn scheme(&self) -> SignatureScheme {
            SignatureScheme::ECDSA_NISTP256_SHA256
        }
    }

    /// Connects to the server in memory.
    fn shake_hands(version: &'static SupportedProtocolVersion) -> Result<(), rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Version1));
        let mut server = ServerConnection::new(Arc::new(server))?;
        let client = client_config(SslMode::Prefer).expect("a configuration");
        let name = ServerName::try_from("localhost").expect("a name");
        let mut client = ClientConnection::new(Arc::new(client), name)?;
        while client.is_handshaking() || server.is_handshaking() {
            let mut bytes = Vec::new();
            client.write_tls(&mut bytes).expect("bytes");
            server.read_tls(&mut bytes.as_slice()).expect("bytes");
            server.process_new_packets()?;
            bytes.clear();
            server.write_tls(&mut bytes).expect("bytes");
            client.read_tls(&mut bytes.as_slice()).expect("bytes");
            client.process_new_packets()?;
        }
        Ok(())
    }

    #[test]
    fn prefer_accepts_certificates_of_version_1() {
        for version in [&TLS12, &TLS13] {
            assert_eq!(shake_hands(version), Ok(()), "{version:?}");
        }
    }
}
