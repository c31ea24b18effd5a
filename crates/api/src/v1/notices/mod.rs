//! `/api/v1/apps/{appId}/notices`.

pub(super) mod create;
pub(super) mod delete;
pub(super) mod get;
pub(super) mod list;
pub(super) mod preview;
pub(super) mod replace;
pub(super) mod test;

mod shape;

use crate::error::ApiError;
use crate::fields::described_body;
use crate::fields::notice::read;
use crate::sealing::AppSealer;
use crate::state::ApiState;
use tributary_domain::access::{AppsWrite, Authorized};
use tributary_domain::app::App;
use tributary_domain::keyring::secret_scope::NOTICE_SECRET_SCOPE;
use tributary_domain::notice::{Notice, NoticeChannel, NoticeDraft, NoticeSettings};
use tributary_domain::vocabulary::id::NoticeId;
use tributary_domain::vocabulary::revision::Revision;

described_body! {
    /// A notice. Which fields are required depends on `channel` and `topic`.
    NoticeFields("NoticeFields") = read
}

/// Encrypts the URL of a notice, or keeps the stored one.
fn seal(
    state: &ApiState,
    caller: &Authorized<AppsWrite>,
    (app, notice): (&App, NoticeId),
    draft: NoticeDraft,
    stored: Option<&NoticeChannel>,
) -> Result<NoticeSettings, ApiError> {
    let sealer = AppSealer::new(state, caller.organization(), app.id);
    let field = notice.to_string();
    let seal = |url: &str| sealer.seal(NOTICE_SECRET_SCOPE, &field, url);
    Ok(draft.into_settings(stored, seal)?)
}

/// Builds a new notice.
fn new_notice(state: &ApiState, app: &App, id: NoticeId, settings: NoticeSettings) -> Notice {
    let at = state.runtime.now();
    Notice {
        id,
        app: app.id,
        progress: settings.topic.first_progress(&app.timezone, at),
        settings,
        owner: None,
        last_sent_at: None,
        last_error: None,
        created_at: at,
        updated_at: at,
        revision: Revision::FIRST,
    }
}
