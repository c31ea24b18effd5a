//! Apple's proof: a signature by a key whose certificate leads, over one intermediate, to a root that is pinned.
//!
//! Only as much of X.509 is read as this needs: what was signed, by which algorithm, the key, the time, and which
//! extensions there are. Whatever does not read proves nothing.

use crate::exchange::Day;
use crate::skan::postback::Jws;
use crate::vocabulary::time::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use p256::ecdsa::signature::Verifier as _;
use p256::ecdsa::signature::hazmat::PrehashVerifier as _;
use sha2::{Digest as _, Sha256, Sha384};

/// Apple Root CA – G3.
const APPLE_ROOT_G3: &str = concat!(
    "MIICQzCCAcmgAwIBAgIILcX8iNLFS5UwCgYIKoZIzj0EAwMwZzEbMBkGA1UEAwwS",
    "QXBwbGUgUm9vdCBDQSAtIEczMSYwJAYDVQQLDB1BcHBsZSBDZXJ0aWZpY2F0aW9u",
    "IEF1dGhvcml0eTETMBEGA1UECgwKQXBwbGUgSW5jLjELMAkGA1UEBhMCVVMwHhcN",
    "MTQwNDMwMTgxOTA2WhcNMzkwNDMwMTgxOTA2WjBnMRswGQYDVQQDDBJBcHBsZSBS",
    "b290IENBIC0gRzMxJjAkBgNVBAsMHUFwcGxlIENlcnRpZmljYXRpb24gQXV0aG9y",
    "aXR5MRMwEQYDVQQKDApBcHBsZSBJbmMuMQswCQYDVQQGEwJVUzB2MBAGByqGSM49",
    "AgEGBSuBBAAiA2IABJjpLz1AcqTtkyJygRMc3RCV8cWjTnHcFBbZDuWmBSp3ZHtf",
    "TjjTuxxEtX/1H7YyYl3J6YRbTzBPEVoA/VhYDKX1DyxNB0cTddqXl5dvMVztK517",
    "IDvYuVTZXpmkOlEKMaNCMEAwHQYDVR0OBBYEFLuw3qFYM4iapIqZ3r6966/ayySr",
    "MA8GA1UdEwEB/wQFMAMBAf8wDgYDVR0PAQH/BAQDAgEGMAoGCCqGSM49BAMDA2gA",
    "MGUCMQCD6cHEFl4aXTQY2e3v9GwOAEZLuN+yRhHFD/3meoyhpmvOwgPUnPWTxnS4",
    "at+qIxUCMG1mihDK1A3UT82NQz60imOlM27jbdoXt2QfyFMm+YhidDkLF1vLUagM",
    "6BgD56KyKA==",
);

/// Marks a certificate that signs for the App Store.
const LEAF_MARK: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x63, 0x64, 0x06, 0x0b, 0x01];
/// Marks the intermediate that signs such certificates. Apple's other ones sign developers'.
const INTERMEDIATE_MARK: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x63, 0x64, 0x06, 0x02, 0x01];
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const CURVE_P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const CURVE_P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const ECDSA_SHA384: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03];

const SEQUENCE: u8 = 0x30;
const OBJECT_ID: u8 = 0x06;
const BIT_STRING: u8 = 0x03;
const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

/// The roots that are trusted, as DER.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots(Vec<Vec<u8>>);

impl Roots {
    /// Apple's.
    pub fn apple() -> Self {
        let root = STANDARD.decode(APPLE_ROOT_G3);
        Self(vec![root.expect("the constant is base64")])
    }

    /// Somebody else's, for whoever tries things out.
    pub const fn of(roots: Vec<Vec<u8>>) -> Self {
        Self(roots)
    }
}

/// Whether a JWS is signed by the first of three certificates that lead to a trusted root, all valid at that time.
pub fn is_signed(jws: &Jws, chain: &[Vec<u8>], roots: &Roots, at: Timestamp) -> bool {
    let Some(Key::P256(key)) = leaf_key(chain, roots, at) else {
        return false;
    };
    p256::ecdsa::Signature::from_slice(&jws.signature)
        .is_ok_and(|signature| key.verify(&jws.signing_input, &signature).is_ok())
}

fn leaf_key(chain: &[Vec<u8>], roots: &Roots, at: Timestamp) -> Option<Key> {
    let [leaf, intermediate, root] = chain else {
        return None;
    };
    // The root that came along is believed only because it is one of ours.
    let root = roots.0.iter().find(|trusted| *trusted == root)?;
    let root = Certificate::read(root)?;
    let intermediate = Certificate::read(intermediate)?;
    let leaf = Certificate::read(leaf)?;
    let holds = intermediate.is_signed_by(&root.key)
        && leaf.is_signed_by(&intermediate.key)
        && leaf.has_extension(LEAF_MARK)
        && intermediate.has_extension(INTERMEDIATE_MARK)
        && [&leaf, &intermediate, &root]
            .iter()
            .all(|one| one.is_valid(at));
    holds.then_some(leaf.key)
}

enum Key {
    P256(p256::ecdsa::VerifyingKey),
    P384(p384::ecdsa::VerifyingKey),
}

struct Certificate<'a> {
    signed: &'a [u8],
    algorithm: &'a [u8],
    signature: &'a [u8],
    key: Key,
    from: Timestamp,
    until: Timestamp,
    extensions: Vec<&'a [u8]>,
}

impl<'a> Certificate<'a> {
    fn read(der: &'a [u8]) -> Option<Self> {
        let mut whole = Der(der);
        let mut certificate = Der(whole.value(SEQUENCE)?);
        if !whole.0.is_empty() {
            return None;
        }
        let (signed, body) = certificate.element(SEQUENCE)?;
        let algorithm = Der(certificate.value(SEQUENCE)?).value(OBJECT_ID)?;
        let signature = certificate.bits()?;
        let mut body = Der(body);
        body.value(VERSION)?;
        body.value(INTEGER)?;
        body.value(SEQUENCE)?;
        body.value(SEQUENCE)?;
        let mut validity = Der(body.value(SEQUENCE)?);
        let (from, until) = (validity.time()?, validity.time()?);
        body.value(SEQUENCE)?;
        let key = public_key(body.value(SEQUENCE)?)?;
        Some(Self {
            signed,
            algorithm,
            signature,
            key,
            from,
            until,
            extensions: extensions(body)?,
        })
    }

    fn has_extension(&self, id: &[u8]) -> bool {
        self.extensions.contains(&id)
    }

    fn is_valid(&self, at: Timestamp) -> bool {
        (self.from..=self.until).contains(&at)
    }

    fn is_signed_by(&self, issuer: &Key) -> bool {
        let hash = match self.algorithm {
            ECDSA_SHA256 => Sha256::digest(self.signed).to_vec(),
            ECDSA_SHA384 => Sha384::digest(self.signed).to_vec(),
            _ => return false,
        };
        match issuer {
            Key::P256(key) => p256::ecdsa::Signature::from_der(self.signature)
                .is_ok_and(|signature| key.verify_prehash(&hash, &signature).is_ok()),
            Key::P384(key) => p384::ecdsa::Signature::from_der(self.signature)
                .is_ok_and(|signature| key.verify_prehash(&hash, &signature).is_ok()),
        }
    }
}

fn public_key(info: &[u8]) -> Option<Key> {
    let mut info = Der(info);
    let mut algorithm = Der(info.value(SEQUENCE)?);
    if algorithm.value(OBJECT_ID)? != EC_PUBLIC_KEY {
        return None;
    }
    let (curve, point) = (algorithm.value(OBJECT_ID)?, info.bits()?);
    match curve {
        CURVE_P256 => p256::ecdsa::VerifyingKey::from_sec1_bytes(point)
            .ok()
            .map(Key::P256),
        CURVE_P384 => p384::ecdsa::VerifyingKey::from_sec1_bytes(point)
            .ok()
            .map(Key::P384),
        _ => None,
    }
}

/// The ids of the extensions. Two other optional fields may stand before them.
fn extensions(mut body: Der<'_>) -> Option<Vec<&[u8]>> {
    let mut found = Vec::new();
    while let Some((tag, value)) = body.any() {
        if tag != EXTENSIONS {
            continue;
        }
        let mut all = Der(Der(value).value(SEQUENCE)?);
        while !all.0.is_empty() {
            found.push(Der(all.value(SEQUENCE)?).value(OBJECT_ID)?);
        }
    }
    body.0.is_empty().then_some(found)
}

/// Bytes of DER that are still to be read.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The next element: its tag and its value.
    fn any(&mut self) -> Option<(u8, &'a [u8])> {
        let (tag, rest) = self.0.split_first()?;
        let (first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(*first), rest),
            // Longer ones than three bytes can say are no certificates.
            0x81..=0x83 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                let number = digits
                    .iter()
                    .fold(0, |number, digit| number << 8 | usize::from(*digit));
                (number, rest)
            }
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, value))
    }

    /// The next element, whole and its value alone, if it is of this kind.
    fn element(&mut self, wanted: u8) -> Option<(&'a [u8], &'a [u8])> {
        let before = self.0;
        let (tag, value) = self.any()?;
        let whole = before.get(..before.len() - self.0.len())?;
        (tag == wanted).then_some((whole, value))
    }

    fn value(&mut self, wanted: u8) -> Option<&'a [u8]> {
        Some(self.element(wanted)?.1)
    }

    /// A string of whole bytes.
    fn bits(&mut self) -> Option<&'a [u8]> {
        match self.value(BIT_STRING)?.split_first()? {
            (0, bytes) => Some(bytes),
            _ => None,
        }
    }

    fn time(&mut self) -> Option<Timestamp> {
        let (tag, value) = self.any()?;
        let text = std::str::from_utf8(value).ok()?.strip_suffix('Z')?;
        let (century, text) = match tag {
            // By RFC 5280, two digits mean 1950 to 2049.
            UTC_TIME if text.get(..2)? < "50" => ("20", text),
            UTC_TIME => ("19", text),
            GENERALIZED_TIME => (text.get(..2)?, text.get(2..)?),
            _ => return None,
        };
        let number = |from: usize| text.get(from..from + 2)?.parse::<i64>().ok();
        if text.len() != 12 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let (year, month, day) = (&text[..2], &text[2..4], &text[4..6]);
        let day = Day::parse(&format!("{century}{year}-{month}-{day}")).ok()?;
        let seconds = number(6)? * 3_600 + number(8)? * 60 + number(10)?;
        let seconds = i64::from(day.as_days()) * 86_400 + seconds;
        Some(Timestamp::from_millis(seconds * 1_000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocabulary::digest::hex;
    use proptest::prelude::*;

    #[test]
    fn apples_root_is_the_one_that_was_published() {
        let Roots(roots) = Roots::apple();
        let digest = hex(&Sha256::digest(&roots[0]));
        let published = "63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179";
        assert_eq!(digest, published);
        let root = Certificate::read(&roots[0]).unwrap();
        assert!(matches!(root.key, Key::P384(_)));
        assert!(root.is_signed_by(&root.key), "it signed itself");
        let moment = |day: &str| {
            let days = i64::from(Day::parse(day).unwrap().as_days());
            Timestamp::from_millis(days * 86_400_000)
        };
        assert!(root.is_valid(moment("2014-05-01")) && root.is_valid(moment("2039-04-30")));
        assert!(!root.is_valid(moment("2014-04-30")) && !root.is_valid(moment("2039-05-01")));
        assert!(!root.has_extension(LEAF_MARK) && root.extensions.len() == 3);
    }

    #[test]
    fn a_changed_certificate_is_another() {
        let Roots(roots) = Roots::apple();
        for place in (0..roots[0].len()).step_by(37) {
            let mut changed = roots[0].clone();
            changed[place] ^= 1;
            let holds = Certificate::read(&changed).is_some_and(|it| it.is_signed_by(&it.key));
            assert!(!holds, "byte {place}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(bytes: Vec<u8>) {
            assert!(Certificate::read(&bytes).is_none());
        }

        #[test]
        fn nothing_panics_on_half_a_certificate(place in 0_usize..579, byte: u8) {
            let Roots(mut roots) = Roots::apple();
            let root = &mut roots[0];
            let last = root.len() - 1;
            root[place.min(last)] = byte;
            let _any_outcome_is_fine = Certificate::read(root).map(|it| it.extensions.len());
        }
    }
}
