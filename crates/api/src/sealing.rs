//! Sealing secrets on their way in, each for the one place it belongs to.

use crate::fields::text_as;
use crate::json::Node;
use crate::state::ApiState;
use tributary_domain::keyring::seal::Sealed;
use tributary_domain::vocabulary::fault::{FaultCode, Problem};
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::text::within;

/// Seals secrets of one app.
pub(crate) struct Sealer<'a> {
    state: &'a ApiState,
    organization: String,
    app: String,
}

impl<'a> Sealer<'a> {
    /// For the secrets of this app.
    pub(crate) fn new(state: &'a ApiState, organization: OrganizationId, app: AppId) -> Self {
        Self {
            state,
            organization: organization.to_string(),
            app: app.to_string(),
        }
    }

    /// Seals a text for its place: what it belongs to, and which field it is.
    pub(crate) fn seal(&self, belongs_to: &str, field: &str, secret: &str) -> Sealed {
        let place = [
            self.organization.as_str(),
            self.app.as_str(),
            belongs_to,
            field,
        ];
        self.state
            .keyring
            .seal(&place, self.state.source.bytes(), secret.as_bytes())
    }

    /// Reads a secret of a body and seals it.
    pub(crate) fn secret(
        &self,
        belongs_to: &'static str,
        field: &'static str,
        chars: std::ops::RangeInclusive<usize>,
    ) -> impl FnOnce(&Node) -> Result<Sealed, Problem> {
        text_as(move |text| {
            within(text, *chars.start(), *chars.end())?;
            if text.chars().any(char::is_control) {
                let message = "Must be one line without control characters.";
                return Err(Problem::new(FaultCode::InvalidCharacter, message));
            }
            Ok(self.seal(belongs_to, field, text))
        })
    }
}
