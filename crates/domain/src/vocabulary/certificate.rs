//! The validity of X.509 certificates.

use crate::vocabulary::time::Timestamp;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

/// Returns when a certificate expires, given in DER form. `None` if it cannot be parsed.
pub fn expires_at(certificate: &[u8]) -> Option<Timestamp> {
    let certificate = Certificate::from_der(certificate).ok()?;
    let not_after = certificate.tbs_certificate().validity().not_after;
    Some(Timestamp::from_millis(0).plus(not_after.to_unix_duration()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn random_bytes_are_no_certificate(bytes: Vec<u8>) {
            prop_assert_eq!(expires_at(&bytes), None);
        }
    }
}
