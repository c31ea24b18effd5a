//! Splits a compact JWS. Postbacks and App Store notifications are signed this way.

use crate::vocabulary::fault::{FaultCode, Problem};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The three decoded parts and the signed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jws {
    /// JSON with key id and algorithm.
    pub header: Vec<u8>,
    /// JSON with the signed data.
    pub payload: Vec<u8>,
    /// Signature. A valid one consists of r and s, 32 bytes each.
    pub signature: Vec<u8>,
    /// `header.payload`, exactly as received.
    pub signing_input: Vec<u8>,
}

impl Jws {
    /// Splits and decodes the text. Does not verify the signature.
    pub fn split(text: &str) -> Result<Self, Problem> {
        let invalid = || {
            let message = "Must be three parts of base64url without padding, separated by dots.";
            Problem::new(FaultCode::InvalidFormat, message)
        };
        let (signing_input, signature) = text.rsplit_once('.').ok_or_else(invalid)?;
        let (header, payload) = signing_input.split_once('.').ok_or_else(invalid)?;
        // A dot is not a base64url character, so a fourth part is rejected here, too.
        let decoded = |part: &str| match URL_SAFE_NO_PAD.decode(part) {
            Ok(bytes) if !bytes.is_empty() => Ok(bytes),
            _ => Err(invalid()),
        };
        Ok(Self {
            header: decoded(header)?,
            payload: decoded(payload)?,
            signature: decoded(signature)?,
            signing_input: signing_input.as_bytes().to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn decodes_the_parts_and_keeps_the_signed_text() {
        let jws = Jws::split("e30.W10.AP-_").unwrap();
        assert_eq!(jws.header, b"{}");
        assert_eq!(jws.payload, b"[]");
        assert_eq!(jws.signature, [0, 0xff, 0xbf]);
        assert_eq!(jws.signing_input, b"e30.W10");
    }

    #[rstest]
    #[case::empty("")]
    #[case::one_part("e30")]
    #[case::two_parts("e30.e30")]
    #[case::four_parts("e30.e30.e30.e30")]
    #[case::padded("e30=.e30.e30")]
    #[case::padded_signature("e30.e30.AA==")]
    #[case::the_other_alphabet("e30.e30.A/+A")]
    #[case::empty_header(".e30.e30")]
    #[case::empty_payload("e30..e30")]
    #[case::no_signature("e30.e30.")]
    #[case::trailing_bits("e30.e30.AB")]
    #[case::a_space("e30.e30.e30 ")]
    #[case::a_line_break("e30.e30.e3\n0")]
    fn rejects_other_text(#[case] text: &str) {
        let problem = Jws::split(text).unwrap_err();
        assert_eq!(problem.code, FaultCode::InvalidFormat);
    }
}
