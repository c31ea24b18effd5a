//! Checks whether Apple's devices can send postbacks to this server.
//!
//! Devices post to two paths on the registrable domain named in the app's `Info.plist`, over HTTPS
//! on port 443. The paths are not requested here, because the route from this machine often differs
//! from a phone's.

use super::check::DoctorCheck;
use url::{Host, Url};

const AREA: &str = "postbacks";
/// Domain names with this many labels are unlikely to be subdomains.
const LABELS_MIN: usize = 2;

/// Checks the server's public address.
pub(super) fn judge(base_url: Option<&Url>) -> DoctorCheck {
    let advice = "for iOS apps, set base_url to https:// and your own domain; see docs/SKAN.md";
    let Some(url) = base_url else {
        let message = "Apple's devices cannot send postbacks: base_url is not set";
        return DoctorCheck::ok(AREA, format!("{message}. {advice}"));
    };
    if url.scheme() != "https" || url.port_or_known_default() != Some(443) {
        let message =
            format!("Apple's devices send postbacks only over HTTPS on port 443, not to {url}");
        return DoctorCheck::warning(AREA, message, advice);
    }
    let name = match url.host() {
        Some(Host::Domain(name)) if name.contains('.') => name.trim_end_matches('.'),
        _ => {
            let message = format!("Apple's devices send postbacks only to a domain, not to {url}");
            return DoctorCheck::warning(AREA, message, advice);
        }
    };
    let paths = "/.well-known/skadnetwork/report-attribution/ and \
                 /.well-known/appattribution/report-attribution/";
    if name.split('.').count() > LABELS_MIN {
        let message = format!(
            "{name} looks like a subdomain, which Apple's devices ignore: they send postbacks to \
             its parent domain"
        );
        let advice = format!(
            "for iOS apps, forward {paths} from that domain to this server; GET returns `ready` \
             when it works"
        );
        return DoctorCheck::warning(AREA, message, advice);
    }
    let message = format!(
        "Apple's devices send postbacks to https://{name}{paths}, which must reach this server"
    );
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
    #[case::unencrypted("http://example.com", CheckStatus::Warning)]
    #[case::an_address("https://203.0.113.7", CheckStatus::Warning)]
    #[case::no_domain("https://localhost", CheckStatus::Warning)]
    fn checks_whether_devices_can_reach_the_base_url(
        #[case] url: &str,
        #[case] expected: CheckStatus,
    ) {
        let url = Url::parse(url).unwrap();
        assert_eq!(judge(Some(&url)).status, expected);
    }

    #[test]
    fn explains_postbacks_without_a_base_url() {
        let check = judge(None);
        assert_eq!(check.status, CheckStatus::Ok);
        assert!(check.message.contains("base_url"), "{check:?}");
    }
}
