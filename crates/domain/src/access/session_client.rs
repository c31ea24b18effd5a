//! Where a session was used from, as its user recognises it.

use crate::vocabulary::subnet::address_range;
use std::net::IpAddr;

/// Parts of a `User-Agent` and the browser they stand for. The first match counts, because most
/// browsers also name the ones they imitate.
const BROWSERS: [(&str, &str); 9] = [
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("FxiOS/", "Firefox"),
    ("Firefox/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
];
/// Parts of a `User-Agent` and the system they stand for. The first match counts.
const SYSTEMS: [(&str, &str); 7] = [
    ("iPhone", "iOS"),
    ("iPad", "iPadOS"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
];

/// Where a session was last used from. It has no full address, because the list of sessions is not
/// an address book.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionClient {
    /// Browser and system, such as `Firefox on Windows`.
    pub browser: Option<String>,
    /// Address range, such as `192.0.2.0/24`.
    pub network: Option<String>,
}

impl SessionClient {
    /// Describes the client of a request.
    pub fn of(user_agent: Option<&str>, address: Option<IpAddr>) -> Self {
        Self {
            browser: user_agent.map(describe),
            network: address.map(address_range),
        }
    }
}

fn describe(user_agent: &str) -> String {
    let find = |names: &[(&str, &'static str)]| {
        let found = names.iter().find(|(part, _)| user_agent.contains(part));
        found.map(|(_, name)| *name)
    };
    match (find(&BROWSERS), find(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        (None, Some(system)) => format!("another browser on {system}"),
        (None, None) => "another browser".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::chrome(
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Safari/537.36",
        "Chrome on Windows"
    )]
    #[case::edge(
        "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Safari/537.36 Edg/130.0",
        "Edge on Windows"
    )]
    #[case::safari(
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15",
        "Safari on macOS"
    )]
    #[case::iphone(
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 CriOS/130.0 Mobile Safari/604.1",
        "Chrome on iOS"
    )]
    #[case::android(
        "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/130.0 Mobile Safari/537.36",
        "Chrome on Android"
    )]
    #[case::firefox(
        "Mozilla/5.0 (X11; Linux x86_64; rv:131.0) Gecko/20100101 Firefox/131.0",
        "Firefox on Linux"
    )]
    #[case::tool("curl/8.5.0", "curl")]
    #[case::unknown("<script>", "another browser")]
    #[case::only_a_system("Thing (Android)", "another browser on Android")]
    fn a_browser_is_named(#[case] user_agent: &str, #[case] expected: &str) {
        let client = SessionClient::of(Some(user_agent), None);
        assert_eq!(client.browser.as_deref(), Some(expected));
    }
}
