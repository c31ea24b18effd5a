//! Generates random and hostile requests as bytes, because HTTP clients refuse to send most of them.

use crate::postbacks::{ADATTRIBUTIONKIT, APP_STORE_ID, SKADNETWORK};
use crate::random::{SeededRng, odd_value, random_bytes};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::Write as _;
use std::sync::LazyLock;

/// One in this many requests violates HTTP.
const BAD_FRAMING: usize = 40;
/// One in this many bodies is larger than the limit.
const GIANT: usize = 2_000;
/// Number of addresses that the requests claim to come from.
const ADDRESSES: usize = 4_096;
/// Number of device ids.
const DEVICES: usize = 16;

/// A gzip member without content.
const EMPTY_MEMBER: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\0\0";

/// Two mebibytes of spaces, compressed.
static BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| gzip(&vec![b' '; 2 * 1024 * 1024]));

const METHODS: &[&str] = &[
    "GET", "GET", "POST", "POST", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE",
    "PROPFIND", "get", "A",
];

const PATHS: &[&str] = &[
    "/",
    "/healthz",
    "/readyz",
    "/openapi.yaml",
    "/llms.txt",
    "/docs/{id}",
    "/mcp",
    "/api/v1/docs/",
    "/api/v1/apps",
    "/api/v1/apps/{id}",
    "/api/v1/apps/{id}/events",
    "/api/v1/apps/{id}/web-events",
    "/api/v1/apps/{id}/web-events/validate",
    "/api/v1/apps/{id}/stats",
    "/api/v1/audit-log",
    "/api/v1/audit-log/export",
    "/api/track/attestation-challenge",
    "/api/track/configure",
    "/api/track/erase",
    "/api/track/events",
    "/api/track/identify",
    "/api/track/skan",
    "/api/webhook/revenuecat/{app}",
    "/api/webhook/superwall/{app}",
    "/api/webhook/appstore/{app}",
    "/api/webhook/stripe/{app}",
    "/api/webhook/adapty/{app}",
    "/api/webhook/qonversion/{app}",
    "/api/webhook/{id}/{id}",
    SKADNETWORK,
    SKADNETWORK,
    ADATTRIBUTIONKIT,
    "/.well-known/apple-app-site-association",
    "/.well-known/assetlinks.json",
    "/c/{id}",
    "/w/{id}",
    "/g/{id}",
    "/g/{id}/hints",
    "/sign-in",
    "/sign-in/sso/{id}",
    "/sign-in/sso/{id}/callback",
    "/forgot",
    "/setup/{id}",
    "/reset/{id}",
    "/static/{id}",
    "/apps/{id}/links",
    "/{id}",
];

const CONTENT_TYPES: &[&str] = &[
    "application/json",
    "application/json; charset=utf-16",
    "text/plain",
    "text/csv",
    "multipart/form-data; boundary=",
    "application/x-www-form-urlencoded",
    "application/\u{7f}json",
];

const ENCODINGS: &[&str] = &[
    "gzip",
    "GZIP",
    "br",
    "gzip, gzip",
    "identity",
    "deflate",
    "",
];

/// Headers that are repeated, contradictory or absurd.
const ODD_HEADERS: &[&str] = &[
    "x-forwarded-for: 1.2.3.4, nonsense, ::1",
    "x-forwarded-for: ,,,,,,,,,,,,,,,,,,,,,,,,,,,,",
    "x-forwarded-proto: javascript",
    "x-forwarded-host: evil.example",
    "authorization: Bearer ",
    "authorization: Basic YTpi",
    "authorization: Bearer ak_live_000000000000000000000000000000000000000000000000",
    "content-type: application/json",
    "content-encoding: gzip",
    "accept-encoding: gzip;q=nan, *;q=2",
    "if-match: \"",
    "if-none-match: *, *, \"x\"",
    "range: bytes=0-,5-1",
    "cookie: __Host-session=x; session=\u{e9}; ;;=;=",
    "origin: null",
    "sec-fetch-site: cross-site",
    "upgrade: h2c",
    "user-agent: \u{ff}\u{fe}",
    "user-agent: Googlebot/2.1",
    "svix-id: a",
    "svix-timestamp: -1",
    "svix-signature: v1,AAAA",
    "x-revenuecat-signature: t=99999999999999999999,v1=zz",
    "cf-ipcountry: <script>",
];

/// What the client does after it has sent a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterSending {
    /// Waits for the response and keeps the connection.
    Wait,
    /// Waits for a response or the end of the connection. The server may choose either.
    WaitForEither,
    /// Closes the connection in the middle of the request.
    Leave,
}

/// A request.
pub(super) struct HostileRequest {
    pub(super) bytes: Vec<u8>,
    pub(super) after: AfterSending,
    /// A response to HEAD has no body.
    pub(super) is_head: bool,
}

/// The parts of the server that a stranger knows.
pub(super) struct PublicFacts {
    pub(super) app: String,
    pub(super) sdk_key: String,
}

/// Returns the next request.
pub(super) fn next_request(rng: &mut SeededRng, facts: &PublicFacts) -> HostileRequest {
    if rng.below(BAD_FRAMING) == 0 {
        return bad_framing(rng);
    }
    let path = path(rng, facts);
    let takes_post = ["/api/track/", "/api/webhook/", "report-attribution"];
    let takes_post = takes_post.iter().any(|part| path.contains(part));
    let method = if takes_post && rng.below(3) > 0 {
        "POST"
    } else {
        rng.pick(METHODS)
    };
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: t.example.com\r\n").into_bytes();
    let address = rng.below(ADDRESSES);
    let line = match rng.below(2) {
        0 => format!(
            "x-forwarded-for: 100.64.{}.{}",
            address / 256,
            address % 256
        ),
        _ => format!(
            "x-forwarded-for: 2001:db8:0:{address:x}::{:x}",
            rng.below(65_536)
        ),
    };
    push_header(&mut head, &line);
    for _ in 0..rng.below(4) {
        push_header(&mut head, rng.pick(ODD_HEADERS));
    }
    if path.starts_with("/api/track/") && rng.below(2) == 0 {
        push_header(&mut head, &format!("x-tributary-key: {}", facts.sdk_key));
    }
    if rng.below(8) == 0 {
        let name = "x".repeat(1 + rng.below(200));
        push_header(
            &mut head,
            &format!("{name}: {}", "y".repeat(rng.below(2_000))),
        );
    }
    let is_giant = rng.below(GIANT) == 0;
    let body = if is_giant {
        vec![b' '; 1024 * 1024 + 1 + rng.below(100_000)]
    } else {
        body(rng, &mut head, &path)
    };
    push_header(&mut head, &format!("content-length: {}", body.len()));
    head.extend(b"\r\n");
    HostileRequest {
        bytes: [head, body].concat(),
        // The server may reject a large body before it has arrived completely.
        after: if is_giant {
            AfterSending::WaitForEither
        } else {
            AfterSending::Wait
        },
        is_head: method == "HEAD",
    }
}

/// Adds a header. Characters above 127 become single bytes, which are not UTF-8.
fn push_header(head: &mut Vec<u8>, line: &str) {
    head.extend(line.chars().map(|c| u8::try_from(c).unwrap_or(b'?')));
    head.extend(b"\r\n");
}

fn path(rng: &mut SeededRng, facts: &PublicFacts) -> String {
    let app = if rng.below(4) == 0 {
        odd_id(rng)
    } else {
        facts.app.clone()
    };
    let path = rng.pick(PATHS).replace("{app}", &app);
    let path = path.replace("{id}", &odd_id(rng));
    match rng.below(4) {
        0 => format!("{path}?{}={}", odd_id(rng), odd_id(rng)),
        1 => format!(
            "{path}?ar_click_id={}&gclid={}&gclid=&%00&%FF=%",
            forged_click(rng),
            odd_id(rng)
        ),
        _ => path,
    }
}

fn odd_id(rng: &mut SeededRng) -> String {
    match rng.below(8) {
        0 => "%00%ff%c0%af".to_owned(),
        1 => "..%2f..%2fetc%2fpasswd".to_owned(),
        2 => "x".repeat(rng.below(1_500)),
        3 => "%f0%9f%9a%80".to_owned(),
        4 => "';drop%20table%20apps;--".to_owned(),
        5 => forged_click(rng),
        6 => "%".to_owned(),
        _ => format!("app_{:026}", rng.next()),
    }
}

fn forged_click(rng: &mut SeededRng) -> String {
    format!("clk_{:032x}{:032x}", rng.next(), rng.next())
}

/// Returns a body, and adds its content type and encoding to the head.
fn body(rng: &mut SeededRng, head: &mut Vec<u8>, path: &str) -> Vec<u8> {
    if rng.below(10) > 0 {
        let content_type = if rng.below(3) > 0 {
            CONTENT_TYPES[0]
        } else {
            rng.pick(CONTENT_TYPES)
        };
        push_header(head, &format!("content-type: {content_type}"));
    }
    let body = plain_body(rng, path);
    if rng.below(5) > 0 {
        return body;
    }
    push_header(head, &format!("content-encoding: {}", rng.pick(ENCODINGS)));
    match rng.below(6) {
        0 => gzip(&body),
        1 => BOMB.clone(),
        2 => EMPTY_MEMBER.repeat(rng.below(1_500)),
        3 => [
            &EMPTY_MEMBER[..10],
            &[0, 0, 0, 0xff, 0xff].repeat(rng.below(6_000)),
        ]
        .concat(),
        4 => {
            let mut damaged = gzip(&body);
            let index = rng.below(damaged.len());
            damaged[index] ^= 1 << rng.below(8);
            damaged
        }
        _ => body,
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn plain_body(rng: &mut SeededRng, path: &str) -> Vec<u8> {
    match rng.below(12) {
        0 => Vec::new(),
        1 => random_bytes(rng, 2_000),
        2 => "[".repeat(rng.below(20_000)).into_bytes(),
        3 => b"{\"a\":".repeat(rng.below(3_000)),
        4 => b"{\"deviceId\": \"\xff\xfe\", \"name\": \"\xc3\"}".to_vec(),
        5 => format!("{{{}\"x\":0}}", "\"name\":0,".repeat(rng.below(2_000))).into_bytes(),
        6 => format!("{{\"revenue\": {}e{}}}", rng.next(), rng.next()).into_bytes(),
        7 => {
            let mut bytes = fitting_body(rng, path).to_string().into_bytes();
            bytes.truncate(rng.below(bytes.len() + 1));
            bytes
        }
        _ => fitting_body(rng, path).to_string().into_bytes(),
    }
}

/// Returns a body in the format of the path, with forged or odd values.
fn fitting_body(rng: &mut SeededRng, path: &str) -> Value {
    let device = format!("00000000-0000-4000-8000-{:012x}", rng.below(DEVICES));
    if path.contains("skadnetwork") || path.contains("appattribution") {
        return forged_postback(rng, path);
    }
    if path.contains("appstore") {
        return json!({"signedPayload": format!("e30.e30.{}", "A".repeat(rng.below(200)))});
    }
    if path.contains("webhook") {
        return json!({"event": {"id": odd_value(rng), "type": odd_value(rng)}, "data": odd_value(rng)});
    }
    if path.contains("web-events") {
        return json!({"eventId": "x", "arClickId": forged_click(rng), "deviceId": device, "revenue": odd_value(rng)});
    }
    let mut body = json!({
        "deviceId": device, "platform": "ios", "userId": odd_value(rng), "events": odd_value(rng),
        "openedUrl": format!("https://t.example.com/c/{}?ar_click_id={}", odd_id(rng), forged_click(rng)),
        "installReferrer": format!("ar_click_id={}", forged_click(rng)),
    });
    for name in [
        "matching",
        "params",
        "appVersion",
        "osVersion",
        "traits",
        "name",
        "timestampMs",
    ] {
        if rng.below(3) == 0 {
            body[name] = odd_value(rng);
        }
    }
    body
}

/// Returns a postback with a wrong signature, for the known or an unknown app.
fn forged_postback(rng: &mut SeededRng, path: &str) -> Value {
    let store_id = match rng.below(2) {
        0 => APP_STORE_ID,
        _ => i64::try_from(rng.below(1 << 31)).unwrap(),
    };
    let id = format!("6aafb7a5-0170-41b5-bbe4-{:012x}", rng.below(1 << 40));
    let mut postback = if path == SKADNETWORK {
        json!({
            "version": "4.0", "ad-network-id": "example123.skadnetwork", "source-identifier": "5239",
            "app-id": store_id, "transaction-id": id, "redownload": false,
            "source-app-id": 1_234_567_891, "fidelity-type": 1, "did-win": true,
            "conversion-value": 63, "postback-sequence-index": 0,
            "attribution-signature": "MEUCIQCAAAAA",
        })
    } else {
        let payload = json!({
            "postback-identifier": id, "ad-network-identifier": "example.adattributionkit",
            "advertised-item-identifier": store_id, "impression-type": "app-impression",
            "source-identifier": "1234", "conversion-type": "download", "did-win": true,
            "postback-sequence-index": 0,
        });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = part(&json!({"kid": "apple-cas-identifier/0", "alg": "ES256"}));
        let signature = "A".repeat(86);
        json!({"jws-string": format!("{header}.{}.{signature}", part(&payload))})
    };
    if rng.below(2) == 0 {
        postback["relay"] = json!("x".repeat(rng.below(4_000)));
    }
    postback
}

/// Returns a request that violates HTTP, or ends early.
fn bad_framing(rng: &mut SeededRng) -> HostileRequest {
    let head = format!("POST {SKADNETWORK} HTTP/1.1\r\nhost: x\r\n");
    let text = match rng.below(16) {
        0 => format!("{head}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
        1 => format!("{head}content-length: 5\r\ncontent-length: 6\r\n\r\nhello!"),
        2 => format!("{head}content-length: -1\r\n\r\n"),
        3 => format!("{head}content-length: 99999999999999999999\r\n\r\n"),
        4 => format!("{head}transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\nx\r\n0\r\n\r\n"),
        5 => format!(
            "{head}transfer-encoding: chunked\r\n\r\n5;{}\r\nhello\r\n0\r\n\r\n",
            "x".repeat(20_000)
        ),
        6 => format!("{head}transfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n"),
        7 => "GET / HTTP/1.1\nhost: x\n\n".to_owned(),
        8 => "GET /healthz HTTP/1.1\r\nhost: x\r\nx-a: b\r\n folded\r\n\r\n".to_owned(),
        9 => "GET /healthz\r\n\r\n".to_owned(),
        10 => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        11 => format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "a".repeat(20_000)),
        12 => format!(
            "GET / HTTP/1.1\r\nhost: x\r\n{}\r\n",
            "x-a: b\r\n".repeat(200)
        ),
        13 => "CONNECT evil.example:443 HTTP/1.1\r\nhost: evil.example\r\n\r\n".to_owned(),
        14 => "\0\0\0\u{16}\u{3}\u{1}\r\n\r\n".to_owned(),
        _ => return cut_short(rng, &head),
    };
    HostileRequest {
        bytes: text.into_bytes(),
        after: AfterSending::WaitForEither,
        is_head: false,
    }
}

/// Returns a request whose sender leaves before its end.
fn cut_short(rng: &mut SeededRng, head: &str) -> HostileRequest {
    let text = match rng.below(3) {
        0 => head.to_owned(),
        1 => format!("{head}content-length: 1000\r\n\r\n{{"),
        _ => format!("{head}transfer-encoding: chunked\r\n\r\n5\r\nhel"),
    };
    HostileRequest {
        bytes: text.into_bytes(),
        after: AfterSending::Leave,
        is_head: false,
    }
}
