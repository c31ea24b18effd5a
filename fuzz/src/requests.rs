//! Targets that send requests, because the parsers under test are private to the API.

use crate::service::{BILLING_SECRET, with_service};
use serde_json::json;
use tributary_domain::click::params::capture;
use tributary_domain::click::{ID_CHARS_MAX, PARAMETERS_BYTES_MAX, PARAMETERS_MAX};
use tributary_domain::link::Campaign;

const JSON: (&str, &str) = ("content-type", "application/json");

/// Sends a JSON body to endpoints of every kind: strict, lenient, nested, single event, batch.
pub fn body(bytes: &[u8]) {
    with_service(|service| {
        let bearer = [JSON, ("authorization", service.bearer.as_str())];
        let app = format!("/api/v1/apps/{}", service.shop);
        for (method, path) in [
            ("POST", "links"),
            ("POST", "web-events"),
            ("POST", "web-events/validate"),
            ("PUT", "costs"),
            ("POST", "skan/evaluate"),
            ("PATCH", "integrations/network_a"),
            ("PUT", "cost-sources/network_b"),
        ] {
            service.send(method, &format!("{app}/{path}"), &bearer, bytes);
        }
        let sdk = [JSON, ("x-tributary-key", service.sdk_key.as_str())];
        for path in ["configure", "erase", "events", "identify"] {
            service.send("POST", &format!("/api/track/{path}"), &sdk, bytes);
        }
    });
}

/// Sends a message to the endpoint for agents, as it is and as the arguments of tools.
pub fn mcp(bytes: &[u8]) {
    with_service(|service| {
        let bearer = [JSON, ("authorization", service.bearer.as_str())];
        service.send("POST", "/mcp?write=1", &bearer, bytes);
        let Ok(text) = std::str::from_utf8(bytes) else {
            return;
        };
        for (tool, name) in [
            ("get_stats", "network"),
            ("explain_device", "deviceId"),
            ("search_docs", "query"),
            // Without a name, so that no link is created for each input.
            ("create_link", "slug"),
        ] {
            let arguments = json!({"appId": service.shop, name: text});
            let params = json!({"name": tool, "arguments": arguments});
            let message =
                json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
            let message = message.to_string();
            service.send("POST", "/mcp?write=1", &bearer, message.as_bytes());
        }
    });
}

/// Parses a query string of a click, checks its limits, and sends it to lists and reports.
pub fn query_string(bytes: &[u8]) {
    let Ok(query) = std::str::from_utf8(bytes) else {
        return;
    };
    let captured = capture(query, &Campaign::default()).captured;
    let others = &captured.query_params;
    let size: usize = others
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    assert!(others.len() <= PARAMETERS_MAX && size <= PARAMETERS_BYTES_MAX);
    // A truncated value may end with a blank, which parsing again would trim.
    let gclid = captured.click_ids.gclid;
    if let Some(gclid) = gclid.filter(|gclid| gclid.chars().count() < ID_CHARS_MAX) {
        let mut written = url::form_urlencoded::Serializer::new(String::new());
        // A plus in a click id does not mean a blank.
        let written = written
            .append_pair("gclid", &gclid)
            .finish()
            .replace('+', "%20");
        let again = capture(&written, &Campaign::default()).captured;
        assert_eq!(again.click_ids.gclid, Some(gclid));
    }
    with_service(|service| {
        let bearer = [("authorization", service.bearer.as_str())];
        for list in ["links", "stats", "events", "deliveries", "costs", "cohorts"] {
            let path = format!("/api/v1/apps/{}/{list}?{query}", service.shop);
            service.send("GET", &path, &bearer, b"");
        }
        service.send("GET", &format!("/unknown-link?{query}"), &[], b"");
    });
}

/// Sends a postback to both endpoints. It has no valid signature, so it is never counted.
pub fn postback(bytes: &[u8]) {
    with_service(|service| {
        for framework in ["skadnetwork", "appattribution"] {
            let path = format!("/.well-known/{framework}/report-attribution/");
            let response = service.send("POST", &path, &[JSON], bytes);
            let status = response.map(|response| response.status.as_u16());
            assert!(matches!(status, Some(200 | 400 | 413)), "{status:?}");
        }
    });
}

/// Sends a billing notification: with the correct secret to the providers that use a header, and to
/// the App Store webhook, where no input has a valid signature.
pub fn webhook(bytes: &[u8]) {
    with_service(|service| {
        let secret = [JSON, ("authorization", BILLING_SECRET)];
        for provider in ["revenuecat", "adapty", "qonversion"] {
            let path = format!("/api/webhook/{provider}/{}", service.shop);
            let response = service.send("POST", &path, &secret, bytes);
            let status = response.map(|response| response.status.as_u16());
            assert!(matches!(status, Some(200 | 400 | 413)), "{status:?}");
        }

        let path = format!("/api/webhook/appstore/{}", service.plain);
        let response = service.send("POST", &path, &[JSON], bytes);
        let status = response.map(|response| response.status.as_u16());
        assert!(matches!(status, Some(400 | 401 | 413)), "{status:?}");
    });
}

/// Sends costs as CSV.
pub fn csv(bytes: &[u8]) {
    with_service(|service| {
        let bearer = service.bearer.as_str();
        let headers = [("content-type", "text/csv"), ("authorization", bearer)];
        let path = format!("/api/v1/apps/{}/costs", service.shop);
        let response = service.send("PUT", &path, &headers, bytes);
        let status = response.map(|response| response.status.as_u16());
        assert!(matches!(status, Some(200 | 400 | 413 | 422)), "{status:?}");
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the corpus contains inputs that pass every check.
    #[test]
    fn the_genuine_inputs_of_the_corpus_are_accepted() {
        with_service(|service| {
            let bearer = ("authorization", service.bearer.as_str());
            let sdk = ("x-tributary-key", service.sdk_key.as_str());
            let secret = ("authorization", BILLING_SECRET);
            let app = format!("/api/v1/apps/{}", service.shop);
            let webhook = |provider| format!("/api/webhook/{provider}/{}", service.shop);
            let billing = webhook("revenuecat");
            let (adapty, qonversion) = (webhook("adapty"), webhook("qonversion"));
            let skan = "/.well-known/skadnetwork/report-attribution/";
            let kit = "/.well-known/appattribution/report-attribution/";
            let configure = "/api/track/configure";
            let (events, identify) = ("/api/track/events", "/api/track/identify");
            let (links, costs) = (format!("{app}/links"), format!("{app}/costs"));
            let csv = ("content-type", "text/csv");
            let input = |path: &str| {
                let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/");
                std::fs::read_to_string(format!("{folder}{path}")).unwrap()
            };
            for (file, method, path, content_type, credential, expected) in [
                ("body/link", "POST", links.as_str(), JSON, bearer, 201),
                ("body/costs", "PUT", &costs, JSON, bearer, 200),
                ("body/configure", "POST", configure, JSON, sdk, 200),
                ("body/sdk_events", "POST", events, JSON, sdk, 202),
                ("body/identify", "POST", identify, JSON, sdk, 204),
                ("csv/plain", "PUT", &costs, csv, bearer, 200),
                ("csv/quoted", "PUT", &costs, csv, bearer, 200),
                ("postback/skadnetwork_4", "POST", skan, JSON, bearer, 200),
                ("postback/skadnetwork_1", "POST", skan, JSON, bearer, 200),
                ("postback/adattributionkit", "POST", kit, JSON, bearer, 200),
                ("webhook/adapty", "POST", &adapty, JSON, secret, 200),
                ("webhook/qonversion", "POST", &qonversion, JSON, secret, 200),
                (
                    "webhook/revenuecat_purchase",
                    "POST",
                    &billing,
                    JSON,
                    secret,
                    200,
                ),
                (
                    "webhook/revenuecat_refund",
                    "POST",
                    &billing,
                    JSON,
                    secret,
                    200,
                ),
                (
                    "webhook/revenuecat_transfer",
                    "POST",
                    &billing,
                    JSON,
                    secret,
                    200,
                ),
            ] {
                let sent = service.send(
                    method,
                    path,
                    &[content_type, credential],
                    input(file).as_bytes(),
                );
                let response = sent.unwrap();
                let text = String::from_utf8_lossy(&response.body);
                assert_eq!(response.status, expected, "{file}: {text}");
            }
            let path = format!("{app}/stats?{}", input("query_string/report"));
            let response = service.send("GET", &path, &[bearer], b"").unwrap();
            assert_eq!(response.status, 200, "query_string/report");
        });
    }
}
