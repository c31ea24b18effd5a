//! The request mix: mostly genuine postbacks, and the forged, replayed and malformed requests that
//! a public endpoint also receives.

use crate::load::Requests;
use serde_json::{Value, json};
use std::net::SocketAddr;
use tributary_testkit::postbacks::{
    ADATTRIBUTIONKIT, PRODUCTION, SKADNETWORK, adattributionkit, skadnetwork, skadnetwork_3,
};

/// Number of blocks between a postback and its replay, so that the original has been answered by
/// then.
const REPLAYED_AFTER: u64 = 20;

/// Kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Genuine SKAdNetwork 4.0 postback.
    SkAdNetwork4,
    /// Genuine SKAdNetwork 3.0 postback.
    SkAdNetwork3,
    /// Genuine AdAttributionKit postback.
    AdAttributionKit,
    /// SKAdNetwork 4.0 postback with a field changed after signing.
    Forged,
    /// AdAttributionKit postback with another postback's signature.
    ForgedJws,
    /// Exact copy of the first postback in an earlier block.
    Replay,
    /// Exact copy of an AdAttributionKit postback in an earlier block.
    ReplayedJws,
    /// The first postback in an earlier block with another conversion value. The signature does not
    /// cover the conversion value.
    OtherValue,
    /// A postback with a field of the wrong type.
    Malformed,
}

/// The repeating block of twenty requests.
const BLOCK: [Kind; 20] = [
    Kind::SkAdNetwork4,
    Kind::AdAttributionKit,
    Kind::SkAdNetwork3,
    Kind::SkAdNetwork4,
    Kind::Forged,
    Kind::SkAdNetwork4,
    Kind::AdAttributionKit,
    Kind::Replay,
    Kind::SkAdNetwork3,
    Kind::SkAdNetwork4,
    Kind::AdAttributionKit,
    Kind::Malformed,
    Kind::SkAdNetwork4,
    Kind::ReplayedJws,
    Kind::AdAttributionKit,
    Kind::SkAdNetwork3,
    Kind::OtherValue,
    Kind::SkAdNetwork4,
    Kind::ForgedJws,
    Kind::AdAttributionKit,
];
/// Requests per block.
pub(crate) const BLOCK_REQUESTS: u64 = BLOCK.len() as u64;
/// Position of the replayed postback in its block.
const REPLAYED: u64 = 0;
/// Position of the replayed AdAttributionKit postback in its block.
const REPLAYED_JWS: u64 = 1;

/// Postback counts, expected or stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PostbackMixCounts {
    pub(crate) stored: u64,
    pub(crate) counted: u64,
    pub(crate) invalid: u64,
    pub(crate) conflicting: u64,
}

impl PostbackMixCounts {
    /// Returns the expected counts after `blocks` blocks.
    pub(crate) fn of(blocks: u64) -> Self {
        let of = |kinds: &[Kind]| {
            let count = BLOCK.iter().filter(|kind| kinds.contains(kind)).count();
            blocks * count as u64
        };
        let counted = of(&[
            Kind::SkAdNetwork4,
            Kind::SkAdNetwork3,
            Kind::AdAttributionKit,
        ]);
        let invalid = of(&[Kind::Forged, Kind::ForgedJws]);
        let conflicting = of(&[Kind::OtherValue]);
        Self {
            stored: counted + invalid + conflicting,
            counted,
            invalid,
            conflicting,
        }
    }
}

/// Requests signed in advance, because signing costs more than sending. After the last request the
/// list repeats, so the requests become replays.
#[derive(Debug)]
pub(crate) struct PreparedRequests {
    first: u64,
    /// Request bytes and expected status.
    requests: Vec<(Vec<u8>, u16)>,
}

impl PreparedRequests {
    /// Prepares `blocks` blocks. `first` must be the number of a block's first request.
    pub(crate) fn blocks(server: SocketAddr, first: u64, blocks: u64) -> Self {
        let numbers = first..first + blocks * BLOCK_REQUESTS;
        Self {
            first,
            requests: numbers.map(|number| request(server, number)).collect(),
        }
    }

    /// Prepares the blocks with these requests. `first` may be any request's number.
    pub(crate) fn covering(server: SocketAddr, first: u64, count: u64) -> Self {
        let (begin, end) = (
            first / BLOCK_REQUESTS,
            (first + count).div_ceil(BLOCK_REQUESTS),
        );
        Self::blocks(server, begin * BLOCK_REQUESTS, end - begin)
    }

    pub(crate) fn len(&self) -> u64 {
        self.requests.len() as u64
    }

    /// Returns how many requests expect this status.
    pub(crate) fn count_with_status(&self, status: u16) -> usize {
        let all = self.requests.iter();
        all.filter(|(_, expected)| *expected == status).count()
    }

    fn at(&self, number: u64) -> &(Vec<u8>, u16) {
        let place = (number - self.first) % self.len();
        &self.requests[usize::try_from(place).unwrap_or_default()]
    }
}

impl Requests for PreparedRequests {
    fn request_bytes(&mut self, number: u64, _millis: i64) -> &[u8] {
        &self.at(number).0
    }

    fn expected_status(&self, number: u64) -> u16 {
        self.at(number).1
    }
}

fn request(server: SocketAddr, number: u64) -> (Vec<u8>, u16) {
    let (path, body, status) = postback(number);
    let body = body.to_string();
    let bytes = format!(
        "POST {path} HTTP/1.1\r\nHost: {server}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    (bytes.into_bytes(), status)
}

/// Returns a request's path, body and expected status.
fn postback(number: u64) -> (&'static str, Value, u16) {
    let (block, place) = (number / BLOCK_REQUESTS, number % BLOCK_REQUESTS);
    let kind = BLOCK[usize::try_from(place).unwrap_or_default()];
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    let earlier = |place: u64| {
        let number = block.saturating_sub(REPLAYED_AFTER) * BLOCK_REQUESTS + place;
        u32::try_from(number).unwrap_or(u32::MAX)
    };
    let with = |mut body: Value, field: &str, value: Value| {
        body[field] = value;
        body
    };
    match kind {
        Kind::SkAdNetwork4 => (SKADNETWORK, skadnetwork(number), 200),
        Kind::SkAdNetwork3 => (SKADNETWORK, skadnetwork_3(number), 200),
        Kind::AdAttributionKit => (ADATTRIBUTIONKIT, adattributionkit(PRODUCTION, number), 200),
        Kind::Forged => {
            let forged = with(skadnetwork(number), "source-identifier", json!("5238"));
            (SKADNETWORK, forged, 200)
        }
        Kind::ForgedJws => (ADATTRIBUTIONKIT, forged_jws(number), 200),
        Kind::Replay => (SKADNETWORK, skadnetwork(earlier(REPLAYED)), 200),
        Kind::ReplayedJws => {
            let replayed = adattributionkit(PRODUCTION, earlier(REPLAYED_JWS));
            (ADATTRIBUTIONKIT, replayed, 200)
        }
        Kind::OtherValue => {
            // Postbacks in the first block are replayed several times, each with a different value.
            let value = json!(block.min(REPLAYED_AFTER));
            let other = with(skadnetwork(earlier(REPLAYED)), "conversion-value", value);
            (SKADNETWORK, other, 200)
        }
        Kind::Malformed => {
            let malformed = with(skadnetwork(number), "redownload", json!("false"));
            (SKADNETWORK, malformed, 400)
        }
    }
}

/// Returns a new payload with the signature of postback 0.
fn forged_jws(number: u32) -> Value {
    let jws = |body: &Value| body["jws-string"].as_str().unwrap_or_default().to_owned();
    let (mut own, other) = (
        adattributionkit(PRODUCTION, number),
        jws(&adattributionkit(PRODUCTION, 0)),
    );
    let text = jws(&own);
    if let (Some((input, _)), Some((_, signature))) =
        (text.rsplit_once('.'), other.rsplit_once('.'))
    {
        own["jws-string"] = json!(format!("{input}.{signature}"));
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn expected_counts_match_the_prepared_requests() {
        const BLOCKS: u64 = REPLAYED_AFTER + 3;
        let server = "127.0.0.1:1".parse().expect("valid address");
        let mut prepared = PreparedRequests::blocks(server, 0, BLOCKS);
        let different: HashSet<Vec<u8>> = prepared
            .requests
            .iter()
            .filter(|(_, status)| *status == 200)
            .map(|(bytes, _)| bytes.clone())
            .collect();
        assert_eq!(different.len() as u64, PostbackMixCounts::of(BLOCKS).stored);
        assert_eq!(prepared.count_with_status(400) as u64, BLOCKS);
        let first = prepared.request_bytes(0, 0).to_vec();
        assert_eq!(prepared.request_bytes(BLOCKS * BLOCK_REQUESTS, 0), first);
    }
}
