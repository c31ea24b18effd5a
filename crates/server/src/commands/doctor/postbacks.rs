//! Where Apple's devices send postbacks, and whether that can be here.
//!
//! Devices post to two paths on the registrable domain that the app's `Info.plist` names, over HTTPS on port 443. What
//! stands there is asked of nobody: from this machine the way is often another one than from a phone.

use super::check::DoctorCheck;
use url::{Host, Url};

const AREA: &str = "postbacks";
/// Labels of a name that can hardly be a subdomain.
const LABELS_MIN: usize = 2;

/// Judges the address that the service is reached at.
pub(super) fn judge(base_url: Option<&Url>) -> DoctorCheck {
    let advice = "for iOS apps set base_url to https:// and a domain of yours; see docs/SKAN.md";
    let Some(url) = base_url else {
        let message = "Apple's devices find nothing here: base_url is not set";
        return DoctorCheck::ok(AREA, format!("{message}. {advice}"));
    };
    if url.scheme() != "https" || url.port_or_known_default() != Some(443) {
        let message = format!("Apple's devices post over HTTPS on port 443 only, not to {url}");
        return DoctorCheck::warning(AREA, message, advice);
    }
    let name = match url.host() {
        Some(Host::Domain(name)) if name.contains('.') => name.trim_end_matches('.'),
        _ => {
            let message = format!("Apple's devices post to a domain, not to {url}");
            return DoctorCheck::warning(AREA, message, advice);
        }
    };
    let paths = "/.well-known/skadnetwork/report-attribution/ and /.well-known/appattribution/report-attribution/";
    if name.split('.').count() > LABELS_MIN {
        let message = format!(
            "{name} looks like a subdomain, which Apple's devices ignore: they post to the domain above it"
        );
        let advice = format!(
            "for iOS apps have that domain pass {paths} on to here; GET on them says `ready` when it does"
        );
        return DoctorCheck::warning(AREA, message, advice);
    }
    let message = format!("Apple's devices post to https://{name}{paths}, which must lead here");
    DoctorCheck::ok(AREA, message)
}

#[cfg(test)]
mod tests {
    use super::super::CheckStatus;
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::a_domain("https://example.com", CheckStatus::Ok)]
    #[case::its_port_written_out("https://example.com:443", CheckStatus::Ok)]
    #[case::a_subdomain("https://track.example.com", CheckStatus::Warning)]
    #[case::another_port("https://example.com:8443", CheckStatus::Warning)]
    #[case::in_the_clear("http://example.com", CheckStatus::Warning)]
    #[case::an_address("https://203.0.113.7", CheckStatus::Warning)]
    #[case::no_domain("https://localhost", CheckStatus::Warning)]
    fn where_devices_can_post(#[case] url: &str, #[case] expected: CheckStatus) {
        let url = Url::parse(url).unwrap();
        assert_eq!(judge(Some(&url)).status, expected);
    }

    #[test]
    fn whoever_has_no_address_is_told_what_it_takes() {
        let check = judge(None);
        assert_eq!(check.status, CheckStatus::Ok);
        assert!(check.message.contains("base_url"), "{check:?}");
    }
}
