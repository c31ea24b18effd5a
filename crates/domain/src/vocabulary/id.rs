//! Typed, prefixed, opaque ids based on UUID version 7.
//!
//! As text, an id is its prefix and 26 characters of lower-case Crockford base32. This text is
//! URL-safe, sorts in the same order as the id, and has no letters that are easily confused. Each
//! id has exactly one spelling: any other text is rejected, so ids can be compared as text.

use crate::vocabulary::time::Timestamp;

/// Lower-case Crockford base32: no `i`, `l`, `o`, `u`.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Bits per character.
const BITS_PER_CHAR: usize = 5;

/// Returns the number of characters for `bytes` bytes. Sixteen bytes take 26 characters, of which
/// the first contains only three bits.
const fn encoded_chars(bytes: usize) -> usize {
    (bytes * 8).div_ceil(BITS_PER_CHAR)
}

/// Returns the number of unused bits in the first character, which are zero.
const fn padding(bytes: usize) -> usize {
    encoded_chars(bytes) * BITS_PER_CHAR - bytes * 8
}

/// The text is not an id of the expected kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an id of this kind")]
pub struct NotAnId;

/// Encodes bytes, as one number, to their canonical text.
pub(crate) fn encode<const N: usize>(prefix: &str, bytes: &[u8; N]) -> String {
    let mut text = String::with_capacity(prefix.len() + encoded_chars(N));
    text.push_str(prefix);
    let (mut buffer, mut bits) = (0_u16, padding(N));
    for byte in bytes {
        buffer = (buffer << 8) | u16::from(*byte);
        bits += 8;
        while bits >= BITS_PER_CHAR {
            bits -= BITS_PER_CHAR;
            text.push(char::from(ALPHABET[usize::from((buffer >> bits) & 31)]));
        }
    }
    text
}

/// Decodes the text of [`encode`], and no other spelling.
pub(crate) fn decode<const N: usize>(prefix: &str, text: &str) -> Result<[u8; N], NotAnId> {
    let digits = text.strip_prefix(prefix).ok_or(NotAnId)?.as_bytes();
    let (first, rest) = digits.split_first().ok_or(NotAnId)?;
    let (mut buffer, mut bits) = (value(*first)?, BITS_PER_CHAR - padding(N));
    // The unused bits of the first character must be zero. Otherwise the number does not fit into
    // the id.
    if digits.len() != encoded_chars(N) || buffer >> bits != 0 {
        return Err(NotAnId);
    }
    let mut bytes = [0; N];
    let mut slots = bytes.iter_mut();
    for digit in rest {
        buffer = (buffer << BITS_PER_CHAR) | value(*digit)?;
        bits += BITS_PER_CHAR;
        if bits >= 8 {
            bits -= 8;
            *slots.next().ok_or(NotAnId)? = (buffer >> bits).to_be_bytes()[1];
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
            /// Prefix of the text.
            pub const PREFIX: &'static str = $prefix;

            /// Creates an id from a time and ten random bytes.
            pub fn new(at: Timestamp, random: [u8; 10]) -> Self {
                let millis = u64::try_from(at.as_millis()).unwrap_or(0);
                let uuid = uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid();
                Self(uuid.into_bytes())
            }

            /// Returns the lower bound of ids created at a time: ids created then or later sort
            /// after it, earlier ones before it.
            pub fn first_at(at: Timestamp) -> Self {
                let mut bytes = [0; 16];
                let millis = u64::try_from(at.as_millis()).unwrap_or(0);
                // The time takes the first six bytes.
                bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
                Self(bytes)
            }

            /// Returns the id that sorts right after this one.
            #[must_use]
            pub const fn following(self) -> Self {
                Self(u128::from_be_bytes(self.0).saturating_add(1).to_be_bytes())
            }

            /// Returns the time that the id was created with.
            pub fn at(&self) -> Timestamp {
                let mut millis = [0; 8];
                millis[2..].copy_from_slice(&self.0[..6]);
                Timestamp::from_millis(i64::from_be_bytes(millis))
            }

            /// Reads the stored form.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// Returns the stored form.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }

            /// Parses the canonical text of an id.
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
    /// An organization, the tenant that owns everything else.
    OrganizationId = "org_";
    /// A person who signs in.
    UserId = "usr_";
    /// A private API key (the record, not the secret).
    KeyId = "key_";
    /// An app.
    AppId = "app_";
    /// A tracking link.
    LinkId = "lnk_";
    /// A click on a tracking link. Sent to the outside with a signature, see `click::token`.
    ClickId = "clk_";
    /// The decision about which click an install belongs to.
    AttributionId = "att_";
    /// A recorded event. The id starts with the event's time, so that ids sort like the event log.
    EventId = "evt_";
    /// The delivery of one event to one network.
    DeliveryId = "dlv_";
    /// A postback from Apple. The id starts with the time received.
    PostbackId = "pbk_";
    /// An alert for an operator.
    AlertId = "alt_";
    /// An entry in the audit log.
    AuditId = "aud_";
    /// A saved view of a report.
    ViewId = "viw_";
    /// A link that shares a report (the record, not the token).
    ShareId = "shr_";
    /// A notice: a report or an alert that an app sends to people.
    NoticeId = "ntc_";
    /// A second factor of a user.
    FactorId = "fct_";
    /// One message of a notice. Receivers use it to detect repeats.
    MessageId = "msg_";
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    proptest! {
        #[test]
        fn bytes_of_any_length_round_trip_through_text(bytes: [u8; 31], others: [u8; 5]) {
            prop_assert_eq!(decode("x_", &encode("x_", &bytes)), Ok(bytes));
            prop_assert_eq!(decode("x_", &encode("x_", &others)), Ok(others));
        }

        #[test]
        fn ids_round_trip_through_text(bytes: [u8; 16]) {
            let id = AppId::from_bytes(bytes);
            prop_assert_eq!(AppId::parse(&id.to_string()), Ok(id));
        }

        #[test]
        fn texts_sort_like_ids(one: [u8; 16], other: [u8; 16]) {
            let (one, other) = (LinkId::from_bytes(one), LinkId::from_bytes(other));
            prop_assert_eq!(one.cmp(&other), one.to_string().cmp(&other.to_string()));
        }

        #[test]
        fn only_the_canonical_text_is_accepted(text in "app_[0-9A-Za-z]{26}") {
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
    fn rejects_anything_else(#[case] text: &str) {
        assert_eq!(AppId::parse(text), Err(NotAnId));
    }

    #[test]
    fn later_ids_sort_later() {
        let early = EARLY.map(|at| AppId::new(at, [255; 10]));
        let late = LATE.map(|at| AppId::new(at, [0; 10]));
        assert!(early < late);
    }

    #[test]
    fn ids_sort_after_the_lower_bound_of_their_time() {
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
