//! `/keys` — API keys: create, show once, rotate, take over, revoke.

mod change;
mod line;
#[cfg(test)]
mod tests;

pub(crate) use change::{create, revoke, rotate, take_over};
pub(crate) use line::{KeyLine, KeyNames};

use crate::access::PageContext;
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::paging;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::key::ApiKey;
use tributary_domain::access::{AppsRead, Environment};
use tributary_domain::vocabulary::id::KeyId;
use tributary_store::{AppName, KeyFilter};

/// Lifetimes that the forms offer for a key, in days.
const EXPIRIES: [u64; 3] = [30, 90, 365];
/// How long a rotated key can stay valid, in hours.
const OVERLAPS: [(u32, &str); 4] = [
    (24, "for 24 hours"),
    (0, "not at all"),
    (7 * 24, "for 7 days"),
    (30 * 24, "for 30 days"),
];
/// Query parameter that also lists revoked and expired keys.
const ENDED: &str = "ended";

#[derive(Template)]
#[template(path = "keys.html")]
struct KeysPage {
    shell: Shell,
    keys: Vec<KeyLine>,
    apps: Vec<AppName>,
    form: FormState,
    /// A new key, shown once.
    new_key: Option<String>,
    base_url: String,
    with_ended: bool,
    older: Option<String>,
}

impl KeysPage {
    async fn load<S>(
        handles: &DashboardHandles,
        context: &PageContext<S>,
        form: FormState,
        new_key: Option<String>,
    ) -> Result<Self, Failure> {
        // Keys of both environments are listed together.
        let caller = context.session.authorize::<AppsRead>(Environment::Live)?;
        let now = handles.runtime.now();
        let with_ended = context.query.get(ENDED).is_some();
        let before = context.query.get("before");
        let before = before.and_then(|text| KeyId::parse(text).ok());
        let filter = KeyFilter {
            valid_at: (!with_ended).then_some(now),
            owner: None,
        };
        let request = paging::request(before.map(|id| *id.as_bytes()));
        let page = handles.store.key_page(&caller, filter, request).await?;
        let members = handles.store.members(&caller).await?;
        let names = KeyNames {
            members: &members,
            apps: context.apps(),
            me: context.session.user.id,
            now,
        };
        let last = page.items.last().map(|key: &ApiKey| key.id.to_string());
        let older = paging::older(&context.query, page.has_more, last);
        let shown = context.apps().iter().filter(|app| !app.archived);
        Ok(Self {
            shell: context.shell(Section::Keys),
            keys: page.items.into_iter().map(|key| names.line(key)).collect(),
            apps: shown.cloned().collect(),
            form,
            new_key,
            base_url: handles.base_url.to_string(),
            with_ended,
            older,
        })
    }

    fn command(&self, key: &str) -> String {
        let base_url = &self.base_url;
        format!("curl \"{base_url}/api/v1/apps\" \\\n  -H 'Authorization: Bearer {key}'")
    }

    fn expiries(&self) -> [u64; 3] {
        EXPIRIES
    }

    fn overlaps(&self) -> [(u32, &'static str); 4] {
        OVERLAPS
    }
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: PageContext<AppsRead>,
) -> Result<Response, Failure> {
    let page = KeysPage::load(&handles, &context, FormState::default(), None).await?;
    Ok(context.page(&page))
}
