//! A compact JWS, taken apart. Postbacks and the App Store's notifications are signed with one.

use crate::vocabulary::fault::{FaultCode, Problem};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The three parts, decoded, and what was signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jws {
    /// JSON: which key, which algorithm.
    pub header: Vec<u8>,
    /// JSON: what is signed.
    pub payload: Vec<u8>,
    /// r and s, 32 bytes each where it is one.
    pub signature: Vec<u8>,
    /// `header.payload`, exactly as it came.
    pub signing_input: Vec<u8>,
}

impl Jws {
    /// Takes the text apart. Nothing is verified yet.
    pub fn split(text: &str) -> Result<Self, Problem> {
        let refused = || {
            let message = "Must be three parts of base64url without padding, with dots between.";
            Problem::new(FaultCode::InvalidFormat, message)
        };
        let (signing_input, signature) = text.rsplit_once('.').ok_or_else(refused)?;
        let (header, payload) = signing_input.split_once('.').ok_or_else(refused)?;
        // A further dot is no letter of base64url, so a fourth part is refused here too.
        let decoded = |part: &str| match URL_SAFE_NO_PAD.decode(part) {
            Ok(bytes) if !bytes.is_empty() => Ok(bytes),
            _ => Err(refused()),
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
    fn the_parts_are_decoded_and_the_signed_text_is_kept() {
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
    fn what_is_no_jws(#[case] text: &str) {
        let problem = Jws::split(text).unwrap_err();
        assert_eq!(problem.code, FaultCode::InvalidFormat);
    }
}
