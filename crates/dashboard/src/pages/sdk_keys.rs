//! `/apps/{app}/settings/sdk-keys/…` — rotates SDK keys and revokes replaced ones. The settings page
//! shows them.

use crate::access::FormSubmission;
use crate::failure::Failure;
use crate::state::DashboardHandles;
use crate::text;
use axum::extract::State;
use axum::response::Response;
use std::time::Duration;
use tributary_domain::access::key::KeyKind;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized, Environment};
use tributary_domain::app::{App, SDK_KEY_OVERLAP_DAYS_MAX, SdkKey, SdkKeyRotation, SdkKeyState};
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::StoreResult;

/// An SDK key on the settings page.
pub(crate) struct SdkKeyLine {
    pub(crate) key: String,
    pub(crate) is_test: bool,
    pub(crate) is_current: bool,
    pub(crate) ends: String,
    pub(crate) last_used: String,
}

impl SdkKeyLine {
    fn of(key: SdkKey, app: &App, now: Timestamp) -> Self {
        let moment = |at| text::moment(at, &app.timezone);
        Self {
            is_current: key.state(now) == SdkKeyState::Current,
            key: key.text,
            is_test: key.environment == Environment::Test,
            ends: key.expires_at.map_or_else(|| "–".to_owned(), moment),
            last_used: key.last_used_at.map_or_else(|| "–".to_owned(), moment),
        }
    }
}

/// Returns the valid keys of an app.
pub(crate) async fn sdk_key_lines(
    handles: &DashboardHandles,
    caller: &Authorized<AppsRead>,
    app: &App,
) -> StoreResult<Vec<SdkKeyLine>> {
    let (keys, now) = (
        handles.store.sdk_keys(caller, app.id).await?,
        handles.runtime.now(),
    );
    let valid = keys.into_iter().filter(|key| key.is_valid(now));
    Ok(valid.map(|key| SdkKeyLine::of(key, app, now)).collect())
}

/// `POST …/rotate` — replaces the current key of an environment.
pub(crate) async fn rotate(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let app = submission.app()?.id;
    let environment = Environment::parse(&submission.form.field("environment"));
    let environment = environment.ok_or(Failure::NotFound)?;
    let days: Option<u32> = submission.form.field("overlapDays").parse().ok();
    let days = days.filter(|days| *days <= SDK_KEY_OVERLAP_DAYS_MAX);
    let days = u64::from(days.ok_or(Failure::NotFound)?);
    let key = handles.runtime.new_key(KeyKind::Sdk, environment);
    let rotation = SdkKeyRotation {
        environment,
        successor: key.reveal().to_owned(),
        overlap: Duration::from_hours(24 * days),
    };
    let (caller, origin) = (&submission.authorized, submission.origin(&handles));
    let rotated = handles.store.rotate_sdk_key(caller, app, rotation, origin);
    rotated.await?;
    submission.redirect("settings", "created")
}

/// `POST …/revoke` — ends a replaced key at once.
pub(crate) async fn revoke(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let app = submission.app()?.id;
    let (caller, origin) = (&submission.authorized, submission.origin(&handles));
    let key = submission.form.field("key");
    let revoked = handles.store.revoke_sdk_key(caller, app, key, origin);
    revoked.await?;
    submission.redirect("settings", "revoked")
}

#[cfg(test)]
mod tests {
    use crate::testing::TestDashboard;
    use axum::http::StatusCode;
    use tributary_domain::access::person::Role;

    #[tokio::test]
    async fn a_key_is_rotated_and_the_replaced_one_revoked() {
        let dashboard = TestDashboard::start().await;
        let admin = dashboard.sign_in_as(Role::Admin).await;
        let app = admin.create_app().await;
        let settings = format!("/apps/{app}/settings");
        let current = async || {
            let page = admin.get(&settings).await;
            page.element("live-key").to_owned()
        };
        let old = current().await;
        assert!(old.starts_with("pk_live_"), "{old}");
        let rotate = format!("{settings}/sdk-keys/rotate");
        let done = admin.post(&rotate, "environment=live&overlapDays=90").await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        let new = current().await;
        assert_ne!(new, old);
        assert!(admin.get(&settings).await.text.contains(&old));
        let revoke = format!("{settings}/sdk-keys/revoke");
        let refused = admin.post(&revoke, &format!("key={new}")).await;
        assert_eq!(refused.status, StatusCode::CONFLICT);
        let done = admin.post(&revoke, &format!("key={old}")).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        assert!(!admin.get(&settings).await.text.contains(&old));
        for fields in [
            "environment=x&overlapDays=1",
            "environment=live&overlapDays=731",
        ] {
            let refused = admin.post(&rotate, fields).await;
            assert_eq!(refused.status, StatusCode::NOT_FOUND);
        }
    }
}
