//! Versions of the protocol. Versions since 2026-07-28 carry the version in every request; earlier
//! ones agree on it with `initialize`. This server keeps no state, so it serves both.

use super::message::{RpcFault, RpcRequest};
use super::result::RpcResult;
use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Versions without a handshake.
const STATELESS: [&str; 1] = ["2026-07-28"];
/// Versions with a handshake, oldest first. Earlier ones had batches, which no client needs.
const WITH_HANDSHAKE: [&str; 2] = ["2025-06-18", "2025-11-25"];
/// All versions, newest first.
pub(super) const SUPPORTED: [&str; 3] = ["2026-07-28", "2025-11-25", "2025-06-18"];

/// Keys of `_meta`.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// Headers that repeat parts of the body.
const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";

/// Milliseconds for which a client may keep lists and documents: until an upgrade changes them.
const KEPT_MILLIS: u32 = 300_000;

/// The rules by which a request is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProtocolEra {
    /// Each request carries its version.
    Stateless,
    /// The client began with `initialize`.
    WithHandshake,
}

impl ProtocolEra {
    /// Chooses the rules for a request, and checks what they require of it.
    pub(super) fn of(headers: &HeaderMap, request: &RpcRequest) -> Result<Self, RpcFault> {
        let declared = text(headers, VERSION_HEADER);
        let meta = request.params.get("_meta").and_then(Value::as_object);
        let Some(version) = meta.and_then(|meta| meta.get(META_VERSION)) else {
            // The header belongs to the requests after the handshake.
            let Some(declared) = declared.filter(|_| request.method != "initialize") else {
                return Ok(Self::WithHandshake);
            };
            return if WITH_HANDSHAKE.contains(&declared) {
                Ok(Self::WithHandshake)
            } else if STATELESS.contains(&declared) {
                Err(missing_meta(META_VERSION))
            } else {
                Err(RpcFault::unsupported_version(&SUPPORTED, declared))
            };
        };
        let version = version.as_str().ok_or_else(|| missing_meta(META_VERSION))?;
        if declared != Some(version) {
            return Err(RpcFault::header_mismatch("MCP-Protocol-Version"));
        }
        if !STATELESS.contains(&version) {
            return Err(RpcFault::unsupported_version(&SUPPORTED, version));
        }
        let capabilities = meta.and_then(|meta| meta.get(META_CAPABILITIES));
        if !capabilities.is_some_and(Value::is_object) {
            return Err(missing_meta(META_CAPABILITIES));
        }
        if text(headers, METHOD_HEADER) != Some(request.method.as_str()) {
            return Err(RpcFault::header_mismatch("Mcp-Method"));
        }
        let name = named(request);
        if name.is_some() && name != decoded(headers).as_deref() {
            return Err(RpcFault::header_mismatch("Mcp-Name"));
        }
        Ok(Self::Stateless)
    }

    /// Adds what these rules require of a result. Lists and documents may be kept for a while.
    pub(super) fn complete(self, method: &str, mut result: RpcResult) -> RpcResult {
        if self == Self::WithHandshake {
            return result;
        }
        result.set("resultType", json!("complete"));
        result.set("_meta", json!({ META_SERVER: server_info() }));
        if method != "tools/call" {
            result.set("ttlMs", json!(KEPT_MILLIS));
            // The list of tools depends on the key.
            result.set("cacheScope", json!("private"));
        }
        result
    }
}

/// Returns the version that `initialize` agrees on: the client's if it is supported, otherwise the
/// newest one with a handshake.
pub(super) fn agree(params: &Map<String, Value>) -> Result<&'static str, RpcFault> {
    let wanted = params.get("protocolVersion").and_then(Value::as_str);
    let wanted =
        wanted.ok_or_else(|| RpcFault::invalid_params("`protocolVersion` is required."))?;
    let [.., newest] = WITH_HANDSHAKE;
    let known = WITH_HANDSHAKE.into_iter().find(|known| *known == wanted);
    Ok(known.unwrap_or(newest))
}

/// Returns the name and version of this program.
pub(super) fn server_info() -> Value {
    json!({"name": "tributary", "title": "Tributary", "version": env!("CARGO_PKG_VERSION")})
}

fn missing_meta(key: &str) -> RpcFault {
    RpcFault::invalid_params(format!("`_meta` must contain `{key}`."))
}

/// Returns what the header `Mcp-Name` repeats.
fn named(request: &RpcRequest) -> Option<&str> {
    let field = match request.method.as_str() {
        "tools/call" => "name",
        "resources/read" => "uri",
        _ => return None,
    };
    request.params.get(field).and_then(Value::as_str)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Returns the header `Mcp-Name`. A name that fits in no header is in Base64, between markers.
fn decoded(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let name = text(headers, NAME_HEADER)?;
    let packed = name.strip_prefix("=?base64?");
    let Some(packed) = packed.and_then(|rest| rest.strip_suffix("?=")) else {
        return Some(Cow::Borrowed(name));
    };
    let bytes = STANDARD.decode(packed).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn request(method: &str, params: &Value) -> RpcRequest {
        RpcRequest {
            id: json!(1),
            method: method.to_owned(),
            params: params.as_object().unwrap().clone(),
        }
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    fn meta(version: &str) -> Value {
        json!({META_VERSION: version, META_CAPABILITIES: {}})
    }

    #[rstest]
    #[case::no_header("tools/list", &[])]
    #[case::older("tools/list", &[(VERSION_HEADER, "2025-06-18")])]
    #[case::newer("tools/list", &[(VERSION_HEADER, "2025-11-25")])]
    #[case::handshake("initialize", &[(VERSION_HEADER, "2024-11-05")])]
    fn earlier_versions_need_no_metadata(
        #[case] method: &str,
        #[case] pairs: &[(&'static str, &'static str)],
    ) {
        let era = ProtocolEra::of(&headers(pairs), &request(method, &json!({})));
        assert_eq!(era, Ok(ProtocolEra::WithHandshake));
    }

    #[rstest]
    #[case::plain("search_docs")]
    #[case::packed("=?base64?c2VhcmNoX2RvY3M=?=")]
    fn the_headers_repeat_the_body(#[case] name: &'static str) {
        let sent = headers(&[
            (VERSION_HEADER, "2026-07-28"),
            (METHOD_HEADER, "tools/call"),
            (NAME_HEADER, name),
        ]);
        let params = json!({"name": "search_docs", "_meta": meta("2026-07-28")});
        let era = ProtocolEra::of(&sent, &request("tools/call", &params));
        assert_eq!(era, Ok(ProtocolEra::Stateless));
    }

    #[rstest]
    #[case::unknown(&[(VERSION_HEADER, "1999-01-01")], json!({}), -32_022)]
    #[case::no_metadata(&[(VERSION_HEADER, "2026-07-28")], json!({}), -32_602)]
    #[case::no_header(&[], json!({"_meta": meta("2026-07-28")}), -32_020)]
    #[case::other_header(
        &[(VERSION_HEADER, "2025-11-25")], json!({"_meta": meta("2026-07-28")}), -32_020
    )]
    #[case::unknown_in_body(
        &[(VERSION_HEADER, "2099-01-01")], json!({"_meta": meta("2099-01-01")}), -32_022
    )]
    #[case::no_capabilities(
        &[(VERSION_HEADER, "2026-07-28")], json!({"_meta": {META_VERSION: "2026-07-28"}}), -32_602
    )]
    #[case::no_method(
        &[(VERSION_HEADER, "2026-07-28")], json!({"_meta": meta("2026-07-28")}), -32_020
    )]
    #[case::no_name(
        &[(VERSION_HEADER, "2026-07-28"), (METHOD_HEADER, "tools/call")],
        json!({"name": "search_docs", "_meta": meta("2026-07-28")}),
        -32_020
    )]
    fn faults(
        #[case] pairs: &[(&'static str, &'static str)],
        #[case] params: Value,
        #[case] expected: i32,
    ) {
        let era = ProtocolEra::of(&headers(pairs), &request("tools/call", &params));
        assert_eq!(era.unwrap_err().code, expected);
    }

    #[rstest]
    #[case("2025-06-18", "2025-06-18")]
    #[case("2025-11-25", "2025-11-25")]
    #[case("2024-11-05", "2025-11-25")]
    #[case("2026-07-28", "2025-11-25")]
    fn the_handshake_agrees_on_a_version(#[case] wanted: &str, #[case] expected: &str) {
        let params = json!({ "protocolVersion": wanted });
        assert_eq!(agree(params.as_object().unwrap()), Ok(expected));
        assert!(agree(&Map::new()).is_err());
    }
}
