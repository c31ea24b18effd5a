//! `/keys` — API keys: create, show once, revoke.

use crate::access::{FormSubmission, PageContext};
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::response::see_other;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::text;
use askama::Template;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use std::time::Duration;
use tributary_domain::access::key::{ApiKey, KeyKind};
use tributary_domain::access::{AppsRead, AppsWrite, Environment, Permission};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::id::KeyId;
use tributary_domain::vocabulary::text::Name;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::NewKey;

/// Lifetimes that the form offers for a key, in days.
const EXPIRIES: [u64; 3] = [30, 90, 365];

#[derive(Template)]
#[template(path = "keys.html")]
struct KeysPage {
    shell: Shell,
    keys: Vec<KeyRow>,
    form: FormState,
    /// A new key, shown once.
    new_key: Option<String>,
    base_url: String,
}

struct KeyRow {
    id: String,
    name: String,
    shown: String,
    permission: &'static str,
    is_test: bool,
    created: String,
    last_used: String,
    ends: String,
    state: &'static str,
}

impl KeyRow {
    fn of(key: ApiKey, now: Timestamp) -> Self {
        let state = if key.revoked_at.is_some() {
            "revoked"
        } else if key.is_valid(now) {
            "valid"
        } else {
            "expired"
        };
        Self {
            id: key.id.to_string(),
            name: key.name,
            shown: format!("ak_{}_…{}", key.environment.as_str(), key.hint),
            permission: permission_label(key.permission),
            is_test: key.environment == Environment::Test,
            created: text::moment_utc(key.created_at),
            last_used: key
                .last_used_at
                .map_or_else(|| "never".to_owned(), |at| text::ago(at, now)),
            ends: key
                .expires_at
                .map_or_else(|| "never".to_owned(), text::moment_utc),
            state,
        }
    }
}

const fn permission_label(permission: Permission) -> &'static str {
    match permission {
        Permission::Full => "Full",
        Permission::ReadOnly => "Read-only",
        Permission::Analytics => "Analytics",
    }
}

impl KeysPage {
    async fn load<S>(
        handles: &DashboardHandles,
        context: &PageContext<S>,
        form: FormState,
        new_key: Option<String>,
    ) -> Result<Self, Failure> {
        let organization = context.session.organization.id;
        let mut keys = handles.store.keys(organization).await?;
        keys.reverse();
        let now = handles.runtime.now();
        Ok(Self {
            shell: context.shell(Section::Keys),
            keys: keys.into_iter().map(|key| KeyRow::of(key, now)).collect(),
            form,
            new_key,
            base_url: handles.base_url.to_string(),
        })
    }

    fn command(&self, key: &str) -> String {
        let base_url = &self.base_url;
        format!("curl \"{base_url}/api/v1/apps\" \\\n  -H 'Authorization: Bearer {key}'")
    }

    fn expiries(&self) -> [u64; 3] {
        EXPIRIES
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

fn choice<T>(found: Option<T>, choices: &str) -> Result<T, Problem> {
    let message = format!("Must be one of {choices}.");
    found.ok_or_else(|| Problem::new(FaultCode::UnknownValue, message))
}

/// `POST /keys` — creates a key and shows it once.
pub(crate) async fn create(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let form = &submission.form;
    let mut faults = Faults::new();
    let name = faults.check("name", Name::parse(&form.field("name")));
    let permission = Permission::parse(&form.field("permission"));
    let permission = choice(permission, "full, read_only, analytics");
    let permission = faults.check("permission", permission);
    let environment = choice(Environment::parse(&form.field("environment")), "live, test");
    let environment = faults.check("environment", environment);
    let days = form.field("expires");
    let days = EXPIRIES.into_iter().find(|one| one.to_string() == days);
    let (Some(name), Some(permission), Some(environment)) = (name, permission, environment) else {
        let form = FormState::from_form(form).with_faults(faults);
        let page = KeysPage::load(&handles, &submission.context, form, None).await?;
        return Ok(submission.page_with(StatusCode::UNPROCESSABLE_ENTITY, &page));
    };
    let at = handles.runtime.now();
    let token = handles.runtime.new_key(KeyKind::Private, environment);
    let key = ApiKey {
        id: KeyId::new(at, handles.runtime.random_bytes()),
        organization: submission.authorized.organization(),
        name: name.as_str().to_owned(),
        permission,
        environment,
        hint: token.hint().to_owned(),
        created_at: at,
        expires_at: days.map(|days| at.plus(Duration::from_hours(24 * days))),
        revoked_at: None,
        last_used_at: None,
    };
    let new = NewKey {
        key,
        digest: token.digest(),
    };
    let origin = submission.origin(&handles);
    handles.store.create_key(new, origin).await?;
    let shown = Some(token.reveal().to_owned());
    let page = KeysPage::load(&handles, &submission.context, FormState::default(), shown).await?;
    Ok(submission.page(&page))
}

/// `POST /keys/{key}/revoke` — revokes a key.
pub(crate) async fn revoke(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let key = KeyId::parse(submission.path_parameter("key")).map_err(|_| Failure::NotFound)?;
    // Keys never change their organization, so this check cannot race with the revocation.
    let keys = handles
        .store
        .keys(submission.authorized.organization())
        .await?;
    if !keys.iter().any(|one| one.id == key) {
        return Err(Failure::Refused(Refusal::KeyNotFound));
    }
    let origin = submission.origin(&handles);
    handles.store.revoke_key(key, origin).await?;
    Ok(see_other("/keys?notice=revoked"))
}
