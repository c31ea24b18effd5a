//! Request templates: written once, sent many times with different ids.

use crate::load::Requests;
use clap::ValueEnum;

/// Placeholder for an id, with the same length.
pub(crate) const ID_PLACEHOLDER: &str = "@@@@@@@@@@@@@@@@";

/// Placeholder for a time in milliseconds, with the same length.
pub(crate) const TIME_PLACEHOLDER: i64 = 9_999_999_999_999;

/// Response status for an accepted event.
const ACCEPTED: u16 = 202;

/// Response status for a page.
const OK: u16 = 200;

/// A request with placeholders.
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
    /// Returns a JSON POST. [`ID_PLACEHOLDER`] and [`TIME_PLACEHOLDER`] in the body are replaced in
    /// each request.
    pub(crate) fn post(host: &str, path: &str, key: &str, body: &str, ids: IdOrder) -> Self {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let offsets = |mark: &str| -> Vec<usize> {
            let found = body.match_indices(mark);
            found.map(|(at, _)| head.len() + at).collect()
        };
        Self {
            id_offsets: offsets(ID_PLACEHOLDER),
            time_offsets: offsets(&TIME_PLACEHOLDER.to_string()),
            body_length: body.len(),
            ids,
            expected: ACCEPTED,
            bytes: (head + body).into_bytes(),
        }
    }

    /// Returns a GET without placeholders.
    pub(crate) fn get(host: &str, path: &str, headers: &str) -> Self {
        Self {
            bytes: format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n").into_bytes(),
            id_offsets: Vec::new(),
            time_offsets: Vec::new(),
            body_length: 0,
            ids: IdOrder::InOrder,
            expected: OK,
        }
    }

    /// Sets the expected response status.
    pub(crate) fn expecting_status(self, expected: u16) -> Self {
        Self { expected, ..self }
    }

    /// Returns the length of the body in bytes.
    pub(crate) fn body_length(&self) -> usize {
        self.body_length
    }
}

impl Requests for Template {
    /// Fills in id and time.
    fn request_bytes(&mut self, number: u64, millis: i64) -> &[u8] {
        let id = self.ids.of(number);
        for offset in &self.id_offsets {
            self.bytes[*offset..*offset + id.len()].copy_from_slice(&id);
        }
        let time = millis.to_string();
        for offset in &self.time_offsets {
            self.bytes[*offset..*offset + time.len()].copy_from_slice(time.as_bytes());
        }
        &self.bytes
    }

    fn expected_status(&self, _number: u64) -> u16 {
        self.expected
    }
}

/// Order of generated ids. Different numbers give different ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum IdOrder {
    /// Ascending, like order numbers.
    InOrder,
    /// Random, like the ids of payment providers, so index writes are scattered.
    Scattered,
}

impl IdOrder {
    /// Returns the id for a number, in hex.
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

    /// Returns [`Self::of`] as text.
    pub(crate) fn text(self, number: u64) -> String {
        self.of(number).map(char::from).iter().collect()
    }
}

/// Mixes the bits with splitmix64, which is a bijection.
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
    fn each_request_has_unique_ids_and_the_same_length() {
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
    fn in_order_ids_sort_by_number() {
        assert!(IdOrder::InOrder.of(255) < IdOrder::InOrder.of(256));
        assert_eq!(IdOrder::InOrder.text(256), "0000000000000100");
    }
}
