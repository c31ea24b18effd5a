//! Typed, prefixed, opaque ids over UUID version 7.
//!
//! As text an id is its prefix and 26 characters of lower-case Crockford base32, which is URL-safe,
//! sorts like the number it stands for, and has no letters that people mistake for others. One id has
//! exactly one spelling: whatever is not the canonical text is refused, so that a comparison of texts
//! is a comparison of ids.

use crate::vocabulary::time::Timestamp;

/// Lower-case Crockford base32: no `i`, `l`, `o`, `u`.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Bits that one character carries.
const BITS_PER_CHAR: usize = 5;

/// Characters of this many bytes. Sixteen make 26, the first of which carries three bits only.
const fn encoded_chars(bytes: usize) -> usize {
    (bytes * 8).div_ceil(BITS_PER_CHAR)
}

/// Bits of the first character that carry nothing, and are zero.
const fn padding(bytes: usize) -> usize {
    encoded_chars(bytes) * BITS_PER_CHAR - bytes * 8
}

/// Why a text is not an id of the kind that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an id of this kind")]
pub struct NotAnId;

/// The canonical text of these bytes, read as one number.
pub(crate) fn encode<const N: usize>(prefix: &str, bytes: &[u8; N]) -> String {
    let mut text = String::with_capacity(prefix.len() + encoded_chars(N));
    text.push_str(prefix);
    let (mut held, mut bits) = (0_u16, padding(N));
    for byte in bytes {
        held = (held << 8) | u16::from(*byte);
        bits += 8;
        while bits >= BITS_PER_CHAR {
            bits -= BITS_PER_CHAR;
            text.push(char::from(ALPHABET[usize::from((held >> bits) & 31)]));
        }
    }
    text
}

/// Reads what [`encode`] wrote, and no other spelling of it.
pub(crate) fn decode<const N: usize>(prefix: &str, text: &str) -> Result<[u8; N], NotAnId> {
    let digits = text.strip_prefix(prefix).ok_or(NotAnId)?.as_bytes();
    let (first, rest) = digits.split_first().ok_or(NotAnId)?;
    let (mut held, mut bits) = (value(*first)?, BITS_PER_CHAR - padding(N));
    // What the first character must not carry would be more than the bytes can hold.
    if digits.len() != encoded_chars(N) || held >> bits != 0 {
        return Err(NotAnId);
    }
    let mut bytes = [0; N];
    let mut places = bytes.iter_mut();
    for digit in rest {
        held = (held << BITS_PER_CHAR) | value(*digit)?;
        bits += BITS_PER_CHAR;
        if bits >= 8 {
            bits -= 8;
            *places.next().ok_or(NotAnId)? = (held >> bits).to_be_bytes()[1];
        }
    }
    Ok(bytes)
}

fn value(digit: u8) -> Result<u16, NotAnId> {
    let mut letters = ALPHABET.iter().zip(0_u16..);
    let found = letters.find(|(letter, _)| **letter == digit);
    found.map(|(_, value)| value).ok_or(NotAnId)
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

            /// Where ids of a moment begin: every id made then or later sorts behind it, every earlier one
            /// before it.
            pub fn first_at(at: Timestamp) -> Self {
                let mut bytes = [0; 16];
                let millis = u64::try_from(at.as_millis()).unwrap_or(0);
                // The time is the first six bytes.
                bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
                Self(bytes)
            }

            /// The id that sorts right behind it.
            #[must_use]
            pub const fn following(self) -> Self {
                Self(u128::from_be_bytes(self.0).saturating_add(1).to_be_bytes())
            }

            /// The moment that it was made of.
            pub fn at(&self) -> Timestamp {
                let mut millis = [0; 8];
                millis[2..].copy_from_slice(&self.0[..6]);
                Timestamp::from_millis(i64::from_be_bytes(millis))
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
                formatter.write_str(&encode(Self::PREFIX, &self.0))
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
    /// A click on a tracking link. Outside it travels with its tag, see `click::token`.
    ClickId = "clk_";
    /// The decision which click an install belongs to.
    AttributionId = "att_";
    /// A recorded event. Its time is the event's own, so that ids sort as the log is read.
    EventId = "evt_";
    /// An event's way to one network.
    DeliveryId = "dlv_";
    /// A postback of Apple's. Its time is that of its arrival.
    PostbackId = "pbk_";
    /// Something that an operator is told.
    AlertId = "alt_";
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
        fn bytes_of_any_length_survive_their_text(bytes: [u8; 31], others: [u8; 5]) {
            prop_assert_eq!(decode("x_", &encode("x_", &bytes)), Ok(bytes));
            prop_assert_eq!(decode("x_", &encode("x_", &others)), Ok(others));
        }

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

    #[test]
    fn ids_of_a_moment_begin_where_it_does() {
        let (early, late) = (EARLY.unwrap(), LATE.unwrap());
        assert!(AppId::new(early, [0; 10]) >= AppId::first_at(early));
        assert!(AppId::new(early, [255; 10]) < AppId::first_at(late));
    }

    #[test]
    fn nothing_sorts_between_an_id_and_the_following_one() {
        let of = |last| AppId::from_bytes([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, last]);
        assert_eq!(of(7).following(), of(8));
        assert!(of(255).following() > of(255));
        let last = AppId::from_bytes([255; 16]);
        assert_eq!(last.following(), last);
    }

    const EARLY: Option<Timestamp> = Some(Timestamp::from_millis(1_700_000_000_000));
    const LATE: Option<Timestamp> = Some(Timestamp::from_millis(1_700_000_000_001));
}
