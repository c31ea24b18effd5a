//! Reads the CBOR of attestation objects and passkeys: definite lengths only, within limits.

/// Maximum nesting. An attestation object has three levels: the object, `attStmt` and `x5c`.
const DEPTH_MAX: usize = 4;
/// Maximum number of values. An attestation object has about 14, and a public key 10.
const VALUES_MAX: usize = 64;

/// A value that borrows from the input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CborValue<'a> {
    Bytes(&'a [u8]),
    Text(&'a str),
    Array(Vec<CborValue<'a>>),
    Map(Vec<(CborValue<'a>, CborValue<'a>)>),
    /// An integer within the range of `i64`.
    Integer(i64),
    /// A larger integer, or a simple value. None of them matters.
    Other,
}

impl<'a> CborValue<'a> {
    /// Parses a value. Returns `None` if the input is not a single value within the limits.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (value, rest) = Self::parse_first(bytes)?;
        rest.is_empty().then_some(value)
    }

    /// Parses the value that the input begins with. Returns it with the rest of the input.
    pub(crate) fn parse_first(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let mut reader = CborReader {
            rest: bytes,
            values_left: VALUES_MAX,
        };
        let value = reader.value(DEPTH_MAX)?;
        Some((value, reader.rest))
    }

    /// Returns the value of a key in a map.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.find(&CborValue::Text(key))
    }

    /// Returns the value of a numbered key in a map.
    pub(crate) fn get_numbered(&self, key: i64) -> Option<&Self> {
        self.find(&CborValue::Integer(key))
    }

    fn find(&self, key: &CborValue<'_>) -> Option<&Self> {
        let Self::Map(pairs) = self else {
            return None;
        };
        let found = pairs.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value)
    }

    /// Returns an integer.
    pub(crate) const fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the bytes of a byte string.
    pub(crate) const fn bytes(&self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

struct CborReader<'a> {
    rest: &'a [u8],
    values_left: usize,
}

impl<'a> CborReader<'a> {
    fn value(&mut self, depth: usize) -> Option<CborValue<'a>> {
        self.values_left = self.values_left.checked_sub(1)?;
        let [initial] = *self.take(1)? else {
            return None;
        };
        let argument = self.argument(initial & 0x1f)?;
        match initial >> 5 {
            0 => Some(i64::try_from(argument).map_or(CborValue::Other, CborValue::Integer)),
            1 => {
                let number = i64::try_from(argument).map(|number| -1 - number);
                Some(number.map_or(CborValue::Other, CborValue::Integer))
            }
            2 => self.take(argument).map(CborValue::Bytes),
            3 => {
                let text = std::str::from_utf8(self.take(argument)?);
                text.ok().map(CborValue::Text)
            }
            4 => {
                let depth = depth.checked_sub(1)?;
                let items = (0..argument).map(|_| self.value(depth));
                items.collect::<Option<_>>().map(CborValue::Array)
            }
            5 => {
                let depth = depth.checked_sub(1)?;
                let pairs = (0..argument).map(|_| Some((self.value(depth)?, self.value(depth)?)));
                pairs.collect::<Option<_>>().map(CborValue::Map)
            }
            // A tag is followed by a value, which tags could nest without limit.
            6 => None,
            _ => Some(CborValue::Other),
        }
    }

    /// Reads the length or number that the low bits of the first byte announce. Indefinite lengths
    /// are rejected.
    fn argument(&mut self, low_bits: u8) -> Option<usize> {
        let size = match low_bits {
            0..24 => return Some(usize::from(low_bits)),
            24 => 1,
            25 => 2,
            26 => 4,
            27 => 8,
            _ => return None,
        };
        let bytes = self.take(size)?.iter();
        let number = bytes.fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
        usize::try_from(number).ok()
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[test]
    fn reads_maps_arrays_texts_and_bytes() {
        // {"a": [h'0102', "b"], "c": 500}
        let bytes = [
            0xa2, 0x61, b'a', 0x82, 0x42, 1, 2, 0x61, b'b', 0x61, b'c', 0x19, 1, 0xf4,
        ];
        let value = CborValue::parse(&bytes).unwrap();
        let list = vec![CborValue::Bytes(&[1, 2]), CborValue::Text("b")];
        assert_eq!(value.get("a"), Some(&CborValue::Array(list)));
        assert_eq!(value.get("c"), Some(&CborValue::Integer(500)));
        assert_eq!(value.get("d"), None);
    }

    #[test]
    fn reads_numbers_and_numbered_keys() {
        // {1: 2, -1: -257, 3: true, 4: 2^64 - 1}, and another value.
        let bytes = [
            0xa4, 1, 2, 0x20, 0x39, 1, 0, 3, 0xf5, 4, 0x1b, 255, 255, 255, 255, 255, 255, 255, 255,
            9,
        ];
        let (value, rest) = CborValue::parse_first(&bytes).unwrap();
        let number = |key| value.get_numbered(key).and_then(CborValue::integer);
        assert_eq!((number(1), number(-1)), (Some(2), Some(-257)));
        assert_eq!(value.get_numbered(4), Some(&CborValue::Other));
        assert_eq!((number(3), number(5)), (None, None));
        assert_eq!(rest, [9]);
        assert_eq!(CborValue::parse(&bytes), None);
    }

    #[rstest]
    #[case::empty(&[])]
    #[case::truncated_bytes(&[0x42, 1])]
    #[case::truncated_length(&[0x59, 1])]
    #[case::trailing(&[0x40, 0])]
    #[case::indefinite(&[0x5f, 0x41, 0, 0xff])]
    #[case::reserved_length(&[0x5c])]
    #[case::tagged(&[0xc0, 0x40])]
    #[case::not_utf_8(&[0x61, 0xff])]
    #[case::huge_bytes(&[0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])]
    #[case::huge_array(&[0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])]
    #[case::huge_map(&[0xbb, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])]
    #[case::too_deep(&[0x81, 0x81, 0x81, 0x81, 0x81, 0x40])]
    fn rejects_other_input(#[case] bytes: &[u8]) {
        assert_eq!(CborValue::parse(bytes), None);
    }

    #[test]
    fn rejects_too_many_values() {
        let list = |count: u8| [vec![0x98, count], vec![0; usize::from(count)]].concat();
        assert!(CborValue::parse(&list(63)).is_some());
        assert!(CborValue::parse(&list(64)).is_none());
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes: Vec<u8>) {
            let _ = CborValue::parse(&bytes);
        }
    }
}
