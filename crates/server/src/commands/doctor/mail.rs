//! Checks the mail server.

use super::check::DoctorCheck;
use crate::config::Config;
use crate::mail::{MailError, Mailer};

const AREA: &str = "mail";

/// Connects and logs in, without sending anything. A failure is a warning, because everything else
/// works without e-mail.
pub(super) async fn examine(config: &Config) -> Vec<DoctorCheck> {
    let outcome = match Mailer::new(config) {
        Ok(mailer) => mailer.check().await,
        Err(_) => Err(MailError::Tls),
    };
    vec![judge(outcome)]
}

fn judge(outcome: Result<(), MailError>) -> DoctorCheck {
    match outcome {
        Ok(()) => DoctorCheck::ok(AREA, "the mail server accepts the connection"),
        Err(MailError::NotConfigured) => DoctorCheck::ok(
            AREA,
            "no e-mail is sent: mail.url and mail.from are not set",
        ),
        Err(error) => DoctorCheck::warning(
            AREA,
            error.to_string(),
            "check mail.url, and that this machine may connect to the mail server",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::CheckStatus;

    #[test]
    fn a_mail_server_is_optional_but_must_work() {
        assert_eq!(judge(Ok(())).status, CheckStatus::Ok);
        assert_eq!(judge(Err(MailError::NotConfigured)).status, CheckStatus::Ok);
        assert_eq!(
            judge(Err(MailError::Login(535))).status,
            CheckStatus::Warning
        );
    }
}
