//! Typed, prefixed, opaque ids over UUID version 7.
//!
//! As text an id is its prefix and 26 characters of lower-case Crockford base32, which is URL-safe,
//! sorts like the number it stands for, and has no letters that people mistake for others. One id has
//! exactly one spelling: whatever is not the canonical text is refused, so that a comparison of texts
//! is a comparison of ids.

use crate::vocabulary::time::Timestamp;

/// Lower-case Crockford base32: no `i`, `l`, `o`, `u`.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// 128 bits in groups of five: 26 characters, the first of which carries three bits only.
const ENCODED_CHARS: usize = 26;

/// Why a text is not an id of the kind that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an id of this kind")]
pub struct NotAnId;

fn encode(prefix: &str, bytes: [u8; 16]) -> String {
    let mut rest = u128::from_be_bytes(bytes);
    let mut digits = [0_u8; ENCODED_CHARS];
    for digit in digits.iter_mut().rev() {
        *digit = ALPHABET[(rest & 31) as usize];
        rest >>= 5;
    }
    let mut text = String::with_capacity(prefix.len() + ENCODED_CHARS);
    text.push_str(prefix);
    text.extend(digits.iter().map(|digit| char::from(*digit)));
    text
}

fn decode(prefix: &str, text: &str) -> Result<[u8; 16], NotAnId> {
    let digits = text.strip_prefix(prefix).ok_or(NotAnId)?.as_bytes();
    // The first character holds the top three bits; above '7' the number would not fit 128 bits.
    if digits.len() != ENCODED_CHARS || digits[0] > b'7' {
        return Err(NotAnId);
    }
    let mut number = 0_u128;
    for digit in digits {
        let value = ALPHABET
            .iter()
            .position(|letter| letter == digit)
            .ok_or(NotAnId)?;
        number = (number << 5) | value as u128;
    }
    Ok(number.to_be_bytes())
}

macro_rules! typed_ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 16]);

        impl $name {
            /// What the text of such an id begins with.
            pub const PREFIX: &'static str = $prefix;

            /// A new id: the time it was made at and ten random bytes, both from outside.
            pub fn new(at: Timestamp, random: [u8; 10]) -> Self {
                let millis = u64::try_from(at.as_millis()).unwrap_or(0);
                let uuid = uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid();
                Self(uuid.into_bytes())
            }

            /// The id as it is stored.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// The id as it is stored.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }

            /// Reads the canonical text of an id.
            pub fn parse(text: &str) -> Result<Self, NotAnId> {
                decode(Self::PREFIX, text).map(Self)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(&encode(Self::PREFIX, self.0))
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, formatter)
            }
        }
    )*};
}

typed_ids! {
    /// An organization: the tenant everything else belongs to.
    OrganizationId = "org_";
    /// A person who signs in.
    UserId = "usr_";
    /// A private API key (the record, not the secret).
    KeyId = "key_";
    /// An app.
    AppId = "app_";
    /// A tracking link.
    LinkId = "lnk_";
    /// One line of the audit log.
    AuditId = "aud_";
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    proptest! {
        #[test]
        fn an_id_survives_its_text(bytes: [u8; 16]) {
            let id = AppId::from_bytes(bytes);
            prop_assert_eq!(AppId::parse(&id.to_string()), Ok(id));
        }

        #[test]
        fn texts_sort_like_ids(one: [u8; 16], other: [u8; 16]) {
            let (one, other) = (LinkId::from_bytes(one), LinkId::from_bytes(other));
            prop_assert_eq!(one.cmp(&other), one.to_string().cmp(&other.to_string()));
        }

        #[test]
        fn only_the_canonical_text_is_read(text in "app_[0-9A-Za-z]{26}") {
            if let Ok(id) = AppId::parse(&text) {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }

    #[rstest]
    #[case::empty("")]
    #[case::prefix_alone("app_")]
    #[case::another_kind("lnk_00000000000000000000000000")]
    #[case::too_short("app_0000000000000000000000000")]
    #[case::too_long("app_000000000000000000000000000")]
    #[case::more_than_128_bits("app_80000000000000000000000000")]
    #[case::upper_case("app_0000000000000000000000000A")]
    #[case::letter_left_out("app_0000000000000000000000000l")]
    #[case::not_ascii("app_000000000000000000000000é")]
    fn anything_else_is_no_app_id(#[case] text: &str) {
        assert_eq!(AppId::parse(text), Err(NotAnId));
    }

    #[test]
    fn later_ids_sort_later() {
        let early = EARLY.map(|at| AppId::new(at, [255; 10]));
        let late = LATE.map(|at| AppId::new(at, [0; 10]));
        assert!(early < late);
    }

    const EARLY: Option<Timestamp> = Some(Timestamp::from_millis(1_700_000_000_000));
    const LATE: Option<Timestamp> = Some(Timestamp::from_millis(1_700_000_000_001));
}
