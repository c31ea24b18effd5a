//! The places that the secrets of an app are sealed for.

use crate::vocabulary::fault::{FaultCode, Problem};
use crate::vocabulary::id::{AppId, OrganizationId};
use crate::vocabulary::text::check_length;
use std::ops::RangeInclusive;

/// What the secrets of an app itself are sealed for, beside organization, app and name.
pub const APP_SECRET_SCOPE: &str = "app";

/// One place: whose app, what in it, which field. A secret that is moved to another one does not open.
pub struct SecretScope<'a> {
    organization: String,
    app: String,
    belongs_to: &'a str,
    field: &'a str,
}

impl<'a> SecretScope<'a> {
    /// Of a field of what belongs to an app: of the app itself, or of its integration with a network.
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

    /// As sealing takes it.
    pub fn parts(&self) -> [&str; 4] {
        [&self.organization, &self.app, self.belongs_to, self.field]
    }
}

/// Whether a text can be a secret of an app.
pub fn check_secret(text: &str, chars: &RangeInclusive<usize>) -> Result<(), Problem> {
    check_length(text, *chars.start(), *chars.end())?;
    if text.chars().any(char::is_control) {
        let message = "Must be one line without control characters.";
        return Err(Problem::new(FaultCode::InvalidCharacter, message));
    }
    Ok(())
}
