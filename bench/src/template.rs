//! Request templates: written once, sent many times with different values.

use crate::load::Requests;
use std::net::Ipv4Addr;

/// Placeholder for the request's id, with the same length.
pub(crate) const ID_PLACEHOLDER: &str = "@@@@@@@@@@@@@@@@";
/// Placeholder for the device's id, with the same length.
pub(crate) const DEVICE_PLACEHOLDER: &str = "@@@@@@@@@@@@@@DD";
/// Placeholder for a time in milliseconds, with the same length.
pub(crate) const TIME_PLACEHOLDER: i64 = 9_999_999_999_999;
/// Placeholder for the last three numbers of an IPv4 address, with the same length.
pub(crate) const ADDRESS_PLACEHOLDER: &str = ".1##.1##.1##";
/// Placeholder for a signed click id, with the same length.
pub(crate) const CLICK_PLACEHOLDER: &str = "clk_~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~";
/// Number of addresses that [`ADDRESS_PLACEHOLDER`] can hold.
pub(crate) const ADDRESSES: u64 = 1_000_000;

/// Length of the part that all id placeholders have in common.
const ID_MARK_LENGTH: usize = 14;
/// Number of requests whose further ids stay different.
const NUMBERS: u64 = 1 << 48;

/// Response status for an accepted event.
const ACCEPTED: u16 = 202;
/// Response status for a page.
const OK: u16 = 200;

/// Returns the placeholder for one of several ids in a request. `index` is 1 to 99.
pub(crate) fn numbered_id_placeholder(index: u64) -> String {
    format!("@@@@@@@@@@@@@@{index:02}")
}

/// Returns the address that fills [`ADDRESS_PLACEHOLDER`] after this first number.
pub(crate) fn numbered_address(first: u8, number: u64) -> Ipv4Addr {
    let [second, third, fourth] = address_digits(number).map(|two| 100 + two);
    Ipv4Addr::new(first, second, third, fourth)
}

/// Returns three numbers below 100.
fn address_digits(number: u64) -> [u8; 3] {
    let two = |divisor: u64| u8::try_from(number / divisor % 100).unwrap_or_default();
    [two(10_000), two(100), two(1)]
}

/// Values that fill the placeholders of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestValues<'a> {
    /// Number of the ids.
    pub(crate) number: u64,
    /// Number of the device.
    pub(crate) device: u64,
    /// Number of the address.
    pub(crate) address: u64,
    /// Signed click id.
    pub(crate) click: &'a str,
    /// Time in milliseconds.
    pub(crate) millis: i64,
}

/// Kind of a placeholder in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Id(u64),
    Device,
    Time,
    Address,
    Click,
}

/// A request with placeholders.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    slots: Vec<(usize, Slot)>,
    ids: IdOrder,
    expected: u16,
}

impl Template {
    /// Returns a JSON POST with a bearer token.
    pub(crate) fn post(host: &str, path: &str, key: &str, body: &str, ids: IdOrder) -> Self {
        let authorization = format!("Authorization: Bearer {key}\r\n");
        Self::post_with(host, path, &authorization, body, ids)
    }

    /// Returns a JSON POST with these headers. Placeholders in headers and body are replaced in
    /// each request.
    pub(crate) fn post_with(
        host: &str,
        path: &str,
        headers: &str,
        body: &str,
        ids: IdOrder,
    ) -> Self {
        let text = format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        Self::of(text, ids, ACCEPTED)
    }

    /// Returns a GET. Placeholders in path and headers are replaced in each request.
    pub(crate) fn get(host: &str, path: &str, headers: &str, ids: IdOrder) -> Self {
        let text = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n");
        Self::of(text, ids, OK)
    }

    fn of(text: String, ids: IdOrder, expected: u16) -> Self {
        let offsets =
            |mark: &str| -> Vec<usize> { text.match_indices(mark).map(|(at, _)| at).collect() };
        let mut slots = Vec::new();
        for at in offsets(&ID_PLACEHOLDER[..ID_MARK_LENGTH]) {
            let index = text.get(at + ID_MARK_LENGTH..at + ID_PLACEHOLDER.len());
            slots.push(match index.unwrap_or_default() {
                "DD" => (at, Slot::Device),
                index => (at, Slot::Id(index.parse().unwrap_or(0))),
            });
        }
        let mut add = |mark: &str, slot: Slot| {
            slots.extend(offsets(mark).into_iter().map(|at| (at, slot)));
        };
        add(&TIME_PLACEHOLDER.to_string(), Slot::Time);
        add(ADDRESS_PLACEHOLDER, Slot::Address);
        add(CLICK_PLACEHOLDER, Slot::Click);
        Self {
            bytes: text.into_bytes(),
            slots,
            ids,
            expected,
        }
    }

    /// Sets the expected response status.
    pub(crate) fn expecting_status(self, expected: u16) -> Self {
        Self { expected, ..self }
    }

    /// Fills the placeholders.
    pub(crate) fn fill(&mut self, values: &RequestValues<'_>) -> &[u8] {
        let time = values.millis.to_string();
        for (offset, slot) in &self.slots {
            let mut write = |text: &[u8]| {
                self.bytes[*offset..*offset + text.len()].copy_from_slice(text);
            };
            match slot {
                Slot::Id(index) => write(&self.ids.of(values.number + index * NUMBERS)),
                Slot::Device => write(&self.ids.of(values.device)),
                Slot::Time => write(time.as_bytes()),
                Slot::Address => write(&address_text(values.address)),
                Slot::Click => write(values.click.as_bytes()),
            }
        }
        &self.bytes
    }
}

/// Returns the text that replaces [`ADDRESS_PLACEHOLDER`].
fn address_text(number: u64) -> [u8; 12] {
    let mut text = *b".1##.1##.1##";
    for (part, two) in text.chunks_exact_mut(4).zip(address_digits(number)) {
        part[2..].copy_from_slice(&[b'0' + two / 10, b'0' + two % 10]);
    }
    text
}

impl Requests for Template {
    fn request_bytes(&mut self, number: u64, millis: i64) -> &[u8] {
        self.fill(&RequestValues {
            number,
            device: number,
            address: number,
            click: CLICK_PLACEHOLDER,
            millis,
        })
    }

    fn expected_status(&self, _number: u64) -> u16 {
        self.expected
    }
}

/// Order of generated ids. Different numbers give different ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
pub(crate) const fn scattered(number: u64) -> u64 {
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

    #[test]
    fn each_placeholder_has_its_own_value() {
        let headers = format!("X-Forwarded-For: 151{ADDRESS_PLACEHOLDER}\r\n");
        let body = [
            ID_PLACEHOLDER,
            &numbered_id_placeholder(1),
            DEVICE_PLACEHOLDER,
            CLICK_PLACEHOLDER,
        ]
        .join(" ");
        let ids = IdOrder::InOrder;
        let mut template = Template::post_with("h", "/p", &headers, &body, ids);
        let click = CLICK_PLACEHOLDER.replace('~', "c");
        let filled = template.fill(&RequestValues {
            number: 2,
            device: 3,
            address: 120_304,
            click: &click,
            millis: NOW,
        });
        let filled = String::from_utf8(filled.to_vec()).unwrap();
        let expected = [
            ids.text(2),
            ids.text(2 + NUMBERS),
            ids.text(3),
            click.clone(),
        ];
        assert!(filled.ends_with(&expected.join(" ")), "{filled}");
        let address = numbered_address(151, 120_304).to_string();
        assert_eq!(address, "151.112.103.104");
        assert!(filled.contains(&format!("X-Forwarded-For: {address}\r\n")));
    }
}
