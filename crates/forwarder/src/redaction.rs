//! Redacts network responses before they are stored. Networks often repeat what was sent, which
//! includes personal data.

use std::net::IpAddr;
use tributary_domain::forwarding::Conversion;
use tributary_networks::{Account, Secret};

/// Maximum length of a stored code.
const CODE_CHARS_MAX: usize = 64;
/// Minimum length of redacted values. Shorter values would also match parts of ordinary words.
const VALUE_CHARS_MIN: usize = 6;
/// Number of hex digits in a SHA-256 hash.
const HASH_DIGITS: usize = 64;
/// Replacement for redacted text.
const REMOVED: &str = "***";

/// Removes personal values from responses.
pub(crate) struct Redactor {
    values: Vec<String>,
}

impl Redactor {
    /// Creates a redactor for the personal values in a batch.
    pub(crate) fn for_batch(batch: &[Conversion]) -> Self {
        let mut values: Vec<String> = batch.iter().flat_map(personal_values).collect();
        values.retain(|value| value.chars().count() >= VALUE_CHARS_MIN);
        values.sort_unstable();
        values.dedup();
        // Longest first, so that a value containing another is removed completely.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self { values }
    }

    /// Removes secrets, known personal values, and anything that looks personal.
    pub(crate) fn redact(&self, account: &Account, token: Option<&Secret>, text: &str) -> String {
        let mut text = account.redact(&printable(text));
        if let Some(token) = token {
            text = text.replace(token.expose(), REMOVED);
        }
        for value in &self.values {
            text = text.replace(value.as_str(), REMOVED);
        }
        redact_lookalikes(&text)
    }
}

/// Limits a network's code to a storable length, and replaces control characters.
pub(crate) fn clean_code(code: &str) -> String {
    printable(code).chars().take(CODE_CHARS_MAX).collect()
}

/// Replaces control characters, which must not reach databases or terminals.
fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(shown).collect()
}

fn personal_values(conversion: &Conversion) -> Vec<String> {
    let mut values = Vec::new();
    if let Some(click) = &conversion.click {
        let (ids, browser) = (&click.captured.click_ids, &click.captured.browser_ids);
        let click_ids = [
            &ids.fbclid,
            &ids.gclid,
            &ids.gbraid,
            &ids.wbraid,
            &ids.ttclid,
            &ids.oppref,
            &browser.fbc,
            &browser.fbp,
            &browser.ttp,
            &browser.obref,
            &click.user_agent,
        ];
        values.extend(click_ids.into_iter().flatten().cloned());
        values.extend(click.address.map(|address| address.to_string()));
    }
    values.extend(conversion.network_click_id.clone().map(|(_, id)| id));
    values.extend(conversion.page_url.clone());
    values.extend(
        conversion
            .user
            .as_ref()
            .map(|user| user.as_str().to_owned()),
    );
    let device = conversion.event.device.as_ref();
    values.extend(device.map(|device| device.as_str().to_owned()));
    if let Some(device) = &conversion.device {
        let advertising = device.advertising_id.as_ref();
        values.extend(advertising.map(|id| id.as_str().to_owned()));
        values.extend(device.idfv.clone());
    }
    values
}

/// Redacts words that look like an email address, an IP address or a hash.
fn redact_lookalikes(text: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || "@._+-%:".contains(c);
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        clean.push_str(if is_personal(word) { REMOVED } else { word });
        let mut others = behind.chars();
        clean.extend(others.next());
        rest = others.as_str();
    }
    clean
}

fn is_personal(word: &str) -> bool {
    let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
    let is_mail = bare.contains('@') || bare.to_ascii_lowercase().contains("%40");
    let is_address = bare.parse::<IpAddr>().is_ok() || word.parse::<IpAddr>().is_ok();
    let is_hash = bare.len() == HASH_DIGITS && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_mail || is_address || is_hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::plain("Invalid parameter: value", "Invalid parameter: value")]
    #[case::mail("user joe@example.com is bad", "user *** is bad")]
    #[case::encoded_mail("em=joe%40example.com", "em=***")]
    #[case::address("from 203.0.113.24, no", "from ***, no")]
    #[case::address_v6("(2001:db8::1)", "(***)")]
    #[case::hash(&format!("em: {}.", "a1".repeat(32)), "em: ***")]
    #[case::shorter_hex(
        "id b86acd70fb880a9f5599081812f779c5",
        "id b86acd70fb880a9f5599081812f779c5"
    )]
    #[case::time("at 2026-11-15T09:38:19Z", "at 2026-11-15T09:38:19Z")]
    #[case::version("v26.0 of 1.2.3", "v26.0 of 1.2.3")]
    #[case::other_letters("Ungültig: größer als 5", "Ungültig: größer als 5")]
    fn redacts_what_looks_personal(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(redact_lookalikes(text), expected);
    }

    #[test]
    fn codes_are_short_single_lines() {
        assert_eq!(clean_code("100/33"), "100/33");
        assert_eq!(clean_code(&"x".repeat(40_000)).len(), CODE_CHARS_MAX);
        assert_eq!(clean_code("a\u{0}b\nc"), "a b c");
    }
}
