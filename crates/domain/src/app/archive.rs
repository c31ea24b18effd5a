//! Behaviour of archived apps.
//!
//! Links keep redirecting, so that running ads still work. Only billing notifications are still
//! recorded, because subscriptions continue and their revenue must stay complete.

use super::App;
use crate::refusal::Refusal;

impl App {
    /// Returns whether clicks on the app's links are recorded.
    pub const fn records_clicks(&self) -> bool {
        !self.archived
    }

    /// Returns whether the app's SDKs may send data.
    pub const fn runs_sdk(&self) -> bool {
        self.sdk.enabled && !self.archived
    }

    /// Rejects web events if the app is archived or does not accept them.
    pub const fn admit_web_events(&self) -> Result<(), Refusal> {
        if self.archived {
            Err(Refusal::AppArchived)
        } else if self.web_events_enabled {
            Ok(())
        } else {
            Err(Refusal::WebEventsDisabled)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::AppCreation;
    use crate::vocabulary::id::{AppId, OrganizationId};
    use crate::vocabulary::text::Name;
    use crate::vocabulary::time::Timestamp;
    use rstest::rstest;

    #[rstest]
    #[case::new(false, true, false, (true, true, Err(Refusal::WebEventsDisabled)))]
    #[case::with_website(false, true, true, (true, true, Ok(())))]
    #[case::sdk_off(false, false, true, (true, false, Ok(())))]
    #[case::archived(true, true, true, (false, false, Err(Refusal::AppArchived)))]
    #[case::archived_and_off(true, false, false, (false, false, Err(Refusal::AppArchived)))]
    fn archived_apps_accept_nothing_new(
        #[case] archived: bool,
        #[case] sdk: bool,
        #[case] website: bool,
        #[case] expected: (bool, bool, Result<(), Refusal>),
    ) {
        let creation = AppCreation {
            id: AppId::from_bytes([2; 16]),
            organization: OrganizationId::from_bytes([1; 16]),
            live_key: "pk_live_1".to_owned(),
            test_key: "pk_test_1".to_owned(),
            at: Timestamp::from_millis(1),
        };
        let mut app = App::new(creation, Name::parse("Runner").unwrap());
        app.archived = archived;
        app.sdk.enabled = sdk;
        app.web_events_enabled = website;
        let found = (app.records_clicks(), app.runs_sdk(), app.admit_web_events());
        assert_eq!(found, expected);
    }
}
