//! Scopes that an app's secrets are encrypted for.

use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::id::{AppId, OrganizationId};
use crate::vocabulary::text::check_length;
use std::ops::RangeInclusive;

/// Owner name of secrets that belong to the app itself instead of an integration.
pub const APP_SECRET_SCOPE: &str = "app";

/// Owner name of the URLs of notices. The field is the notice's id.
pub const NOTICE_SECRET_SCOPE: &str = "notice";

/// Scope of a secret: organization, app, owner and field. In another scope the secret cannot be
/// decrypted.
pub struct SecretScope<'a> {
    organization: String,
    app: String,
    belongs_to: &'a str,
    field: &'a str,
}

impl<'a> SecretScope<'a> {
    /// Creates the scope for a field of an app or one of its integrations.
    pub fn new(
        organization: OrganizationId,
        app: AppId,
        belongs_to: &'a str,
        field: &'a str,
    ) -> Self {
        Self {
            organization: organization.to_string(),
            app: app.to_string(),
            belongs_to,
            field,
        }
    }

    /// Returns the parts that [`Keyring::seal`](super::Keyring::seal) expects.
    pub fn parts(&self) -> [&str; 4] {
        [&self.organization, &self.app, self.belongs_to, self.field]
    }
}

/// Checks the length and characters of an app's secret.
pub fn check_secret(text: &str, chars: &RangeInclusive<usize>) -> Result<(), Problem> {
    check_length(text, *chars.start(), *chars.end())?;
    if text.chars().any(char::is_control) {
        let message = "Must be one line without control characters.";
        return Err(Problem::new(FaultCode::InvalidCharacter, message));
    }
    Ok(())
}
