//! Validation of an app's iOS and Android identifiers.

use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::text::{EXTERNAL_ID_BYTES_MAX, reject_nul};
use crate::vocabulary::web_url::HostName;

/// Maximum number of signing certificates per Android app.
pub const CERT_FINGERPRINTS_MAX: usize = 20;
/// Length of a SHA-256 fingerprint in bytes.
const FINGERPRINT_BYTES: usize = 32;

fn checked(text: &str, fits: bool, message: &str) -> Result<String, Problem> {
    reject_nul(text)?;
    if fits {
        Ok(text.to_owned())
    } else {
        Err(Problem::new(FaultCode::InvalidFormat, message))
    }
}

/// Parses an Apple bundle id.
pub fn parse_bundle_id(text: &str) -> Result<String, Problem> {
    let fits = (1..=155).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
    checked(
        text,
        fits,
        "Must be a bundle id, for example com.example.runner.",
    )
}

/// Parses an App Store id: the digits after `id` in the app's App Store URL.
pub fn parse_app_store_id(text: &str) -> Result<String, Problem> {
    let fits = (1..=19).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && !text.starts_with('0');
    checked(
        text,
        fits,
        "Must be a numeric App Store id, for example 123456789.",
    )
}

/// Parses an Apple developer team id.
pub fn parse_team_id(text: &str) -> Result<String, Problem> {
    let fits = text.len() == 10
        && text
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    checked(
        text,
        fits,
        "Must be ten capital letters and digits, for example ABCDE12345.",
    )
}

/// Parses an Android package name.
pub fn parse_package_name(text: &str) -> Result<String, Problem> {
    let segment_fits = |segment: &str| {
        segment.starts_with(|c: char| c.is_ascii_alphabetic())
            && segment
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let fits = text.len() <= EXTERNAL_ID_BYTES_MAX
        && text.contains('.')
        && text.split('.').all(segment_fits);
    checked(
        text,
        fits,
        "Must be a package name, for example com.example.runner.",
    )
}

/// Parses a custom link host. Rejects the service's own host, because an app that claimed it would
/// control the association files of every tenant.
pub fn parse_link_domain(text: &str, base_url: &str) -> Result<HostName, Problem> {
    let host = HostName::parse(text)?;
    let service_host = base_url
        .split_once("://")
        .map_or(base_url, |(_, rest)| rest);
    let service_host = service_host.split(['/', ':']).next().unwrap_or_default();
    if host.as_str().eq_ignore_ascii_case(service_host) {
        return Err(Problem::new(
            FaultCode::NotAllowed,
            "This is the service's own host, which every app can use. Leave linkDomain null.",
        ));
    }
    Ok(host)
}

/// Parses the SHA-256 fingerprint of a certificate, with or without colons. Returns Google's form:
/// upper case with colons.
pub fn parse_cert_fingerprint(text: &str) -> Result<String, Problem> {
    reject_nul(text)?;
    let digits: String = text.chars().filter(|c| *c != ':').collect();
    let colons_fit = !text.contains(':') || text.split(':').all(|pair| pair.len() == 2);
    let fits = digits.len() == FINGERPRINT_BYTES * 2
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && colons_fit;
    if !fits {
        return Err(Problem::new(
            FaultCode::InvalidFormat,
            "Must be a SHA-256 fingerprint: 32 pairs of hex digits, with or without colons.",
        ));
    }
    let pairs: Vec<String> = digits
        .as_bytes()
        .chunks(2)
        .map(|pair| {
            pair.iter()
                .map(|byte| char::from(byte.to_ascii_uppercase()))
                .collect()
        })
        .collect();
    Ok(pairs.join(":"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("com.example.runner", true)]
    #[case("com.example.run-ner2", true)]
    #[case("", false)]
    #[case("com example", false)]
    #[case("com.example\0", false)]
    fn validates_bundle_ids(#[case] text: &str, #[case] accepted: bool) {
        assert_eq!(parse_bundle_id(text).is_ok(), accepted);
    }

    #[rstest]
    #[case("123456789", true)]
    #[case("6450000000", true)]
    #[case("0123", false)]
    #[case("id123", false)]
    #[case("", false)]
    #[case("12345678901234567890", false)]
    fn validates_app_store_ids(#[case] text: &str, #[case] accepted: bool) {
        assert_eq!(parse_app_store_id(text).is_ok(), accepted);
    }

    #[rstest]
    #[case("com.example.runner", true)]
    #[case("com.example.run_ner2", true)]
    #[case("runner", false)]
    #[case("com..runner", false)]
    #[case("com.2runner", false)]
    #[case("com.example.", false)]
    fn validates_package_names(#[case] text: &str, #[case] accepted: bool) {
        assert_eq!(parse_package_name(text).is_ok(), accepted);
    }

    #[rstest]
    #[case::custom("go.example.com", true)]
    #[case::the_services_own("t.example.com", false)]
    #[case::the_services_in_capitals("T.Example.COM", false)]
    #[case::below_the_services("go.t.example.com", true)]
    fn validates_link_domains(#[case] text: &str, #[case] accepted: bool) {
        for base_url in ["https://t.example.com", "https://t.example.com:8443/"] {
            assert_eq!(parse_link_domain(text, base_url).is_ok(), accepted);
        }
    }

    #[test]
    fn validates_team_ids() {
        assert!(parse_team_id("ABCDE12345").is_ok());
        assert!(parse_team_id("abcde12345").is_err());
        assert!(parse_team_id("ABCDE1234").is_err());
    }

    #[test]
    fn converts_fingerprints_to_googles_form() {
        let plain = "ab".repeat(32);
        let expected = ["AB"; 32].join(":");
        assert_eq!(parse_cert_fingerprint(&plain), Ok(expected.clone()));
        assert_eq!(parse_cert_fingerprint(&expected), Ok(expected));
        assert!(parse_cert_fingerprint(&"ab".repeat(31)).is_err());
        assert!(parse_cert_fingerprint(&"zz".repeat(32)).is_err());
        assert!(parse_cert_fingerprint(&format!("a:b{}", "ab".repeat(31))).is_err());
    }
}
