//! A request that is written once and sent many times, each time with ids of its own.

use crate::load::Requests;
use clap::ValueEnum;

/// What stands where an id belongs, and as long as one.
pub(crate) const ID_PLACEHOLDER: &str = "@@@@@@@@@@@@@@@@";

/// What stands where the time belongs, and as long as one in milliseconds.
pub(crate) const TIME_PLACEHOLDER: i64 = 9_999_999_999_999;

/// What an event is accepted with.
const ACCEPTED: u16 = 202;

/// The bytes of a request.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    id_offsets: Vec<usize>,
    time_offsets: Vec<usize>,
    body_length: usize,
    ids: IdOrder,
    expected: u16,
}

impl Template {
    /// A POST of JSON; [`ID`] and [`TIME`] stand for the request's own id and time wherever they occur in the body.
    pub(crate) fn post(host: &str, path: &str, key: &str, body: &str, ids: IdOrder) -> Self {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let places = |mark: &str| -> Vec<usize> {
            let found = body.match_indices(mark);
            found.map(|(at, _)| head.len() + at).collect()
        };
        Self {
            id_offsets: places(ID_PLACEHOLDER),
            time_offsets: places(&TIME_PLACEHOLDER.to_string()),
            body_length: body.len(),
            ids,
            expected: ACCEPTED,
            bytes: (head + body).into_bytes(),
        }
    }

    /// The same, to be answered with this status.
    pub(crate) fn expecting_status(self, expected: u16) -> Self {
        Self { expected, ..self }
    }

    /// Bytes of the body.
    pub(crate) fn body_length(&self) -> usize {
        self.body_length
    }
}

impl Requests for Template {
    /// With this number's id.
    fn request_bytes(&mut self, number: u64, millis: i64) -> &[u8] {
        let id = self.ids.of(number);
        for place in &self.id_offsets {
            self.bytes[*place..*place + id.len()].copy_from_slice(&id);
        }
        let time = millis.to_string();
        for place in &self.time_offsets {
            self.bytes[*place..*place + time.len()].copy_from_slice(time.as_bytes());
        }
        &self.bytes
    }

    fn expected_status(&self, _number: u64) -> u16 {
        self.expected
    }
}

/// What the ids of events and devices look like. No two numbers share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IdOrder {
    /// Each sorts behind the one before, as order numbers do.
    InOrder,
    /// In no order, as the ids of payment providers are: every one is written to another place of an index.
    Scattered,
}

impl IdOrder {
    /// The id of a number, in hex.
    pub(crate) fn of(self, number: u64) -> [u8; 16] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let number = match self {
            Self::InOrder => number,
            Self::Scattered => scattered(number),
        };
        let mut text = [0; 16];
        for (digits, byte) in text.chunks_exact_mut(2).zip(number.to_be_bytes()) {
            digits.copy_from_slice(&[
                DIGITS[usize::from(byte >> 4)],
                DIGITS[usize::from(byte & 15)],
            ]);
        }
        text
    }

    /// As [`Self::of`], as text.
    pub(crate) fn text(self, number: u64) -> String {
        self.of(number).map(char::from).iter().collect()
    }
}

/// A bijection (splitmix64).
const fn scattered(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_760_000_000_000;

    #[test]
    fn every_request_has_ids_of_its_own_and_keeps_its_length() {
        let body = format!(
            r#"{{"a":"{ID_PLACEHOLDER}","b":"v-{ID_PLACEHOLDER}","c":{TIME_PLACEHOLDER}}}"#
        );
        for ids in [IdOrder::InOrder, IdOrder::Scattered] {
            let mut template = Template::post("h", "/p", "k", &body, ids);
            let one = template.request_bytes(1, NOW).to_vec();
            let two = template.request_bytes(2, NOW + 1).to_vec();
            assert_eq!(one.len(), two.len());
            let one = String::from_utf8(one).unwrap();
            let expected = body.replace(ID_PLACEHOLDER, &ids.text(1));
            let expected = expected.replace(&TIME_PLACEHOLDER.to_string(), &NOW.to_string());
            assert!(one.ends_with(&expected), "{one}");
            assert_ne!(ids.of(1), ids.of(2));
        }
    }

    #[test]
    fn ids_in_order_sort_as_their_numbers_do() {
        assert!(IdOrder::InOrder.of(255) < IdOrder::InOrder.of(256));
        assert_eq!(IdOrder::InOrder.text(256), "0000000000000100");
    }
}
