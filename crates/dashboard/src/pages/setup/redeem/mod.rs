//! `POST /setup/{token}` — creates the account. The first owner of an instance also gets an API key,
//! which is shown once; invited members create theirs in the dashboard. An account without a password
//! gets recovery codes with its passkey.

mod credentials;
#[cfg(test)]
mod tests;

use super::ValidLink;
use super::form_page::{FormPage, SetupFormErrors};
use crate::access::change_origin;
use crate::failure::Failure;
use crate::pages::factors::new_codes;
use crate::pages::sign_in::{CheckedSignIn, begin_checked_session, with_cookies};
use crate::response::{page, see_other};
use crate::same_origin::SameOrigin;
use crate::state::DashboardHandles;
use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use credentials::NewAccount;
use tributary_domain::access::factor::recovery::RecoveryCode;
use tributary_domain::access::key::{ApiKey, KeyText};
use tributary_domain::access::person::{Role, SetupLink};
use tributary_domain::access::{Actor, Environment, Permission};
use tributary_domain::audit::Client;
use tributary_domain::refusal::Refusal;
use tributary_fields::Form;
use tributary_store::{NewKey, Redemption, StoreError};

#[derive(Template)]
#[template(path = "ready.html")]
struct ReadyPage<'a> {
    email: &'a str,
    /// Recovery codes of an account with a passkey and no password.
    codes: Vec<String>,
    /// The key of a first owner.
    key: Option<&'a str>,
    permission: Permission,
    base_url: &'a str,
}

impl ReadyPage<'_> {
    fn create_app(&self, key: &str) -> String {
        self.command(key, "/api/v1/apps", r#"{"name": "My app"}"#)
    }

    fn create_link(&self, key: &str) -> String {
        let body = r#"{"name": "My first link"}"#;
        self.command(key, "/api/v1/apps/APP_ID/links", body)
    }

    fn command(&self, key: &str, path: &str, body: &str) -> String {
        let base_url = self.base_url;
        format!(
            "curl \"{base_url}{path}\" \\\n  -H 'Authorization: Bearer {key}' \\\n  \
             -H 'Content-Type: application/json' \\\n  -d '{body}'"
        )
    }
}

/// Redeems a setup link.
pub(crate) async fn redeem(
    _: SameOrigin,
    State(handles): State<DashboardHandles>,
    client: Option<Extension<Client>>,
    headers: HeaderMap,
    link: ValidLink,
    form: Form,
) -> Result<Response, Failure> {
    if let Some(provider) = link.provider(&handles).await? {
        return Ok(see_other(&provider));
    }
    let typed = form.field("email");
    let new = match NewAccount::read(&handles, &link, &form, &headers).await? {
        Ok(new) => new,
        Err(faults) => {
            let page = FormPage::new(&handles, &link, &typed, faults);
            return Ok(page.answer(&handles.own_origin));
        }
    };
    let (user, email, credential) = (new.user, new.email.clone(), new.credential());
    let key = first_key(&handles, &link.link);
    let codes = match &new.passkey {
        Some(_) => new_codes(&handles),
        None => Vec::new(),
    };
    let redemption = Redemption {
        user,
        email: new.email,
        password_hash: new.password_hash,
        passkey: new.passkey,
        recovery_codes: codes.iter().map(|code| code.digest(user)).collect(),
        first_key: key.as_ref().map(|(key, text)| NewKey {
            key: key.clone(),
            digest: text.digest(),
        }),
    };
    let client = client.map(|Extension(client)| client);
    let origin = change_origin(Actor::User(user), client.as_ref(), &handles);
    let redeemed = handles
        .store
        .redeem_setup_link(link.digest, redemption, origin);
    match redeemed.await {
        Ok(user) => {
            tracing::info!(user = %user.id, organization = %user.organization, "account created");
            let ready = ReadyPage {
                email: email.as_str(),
                codes: codes.iter().map(RecoveryCode::reveal).collect(),
                key: key.as_ref().map(|(_, text)| text.reveal()),
                permission: permission_for_role(link.link.role),
                base_url: &handles.base_url,
            };
            // Sign the new user in. The account exists even if that fails.
            let ready = page(StatusCode::OK, &ready);
            let checked = CheckedSignIn {
                user: user.id,
                credential,
                proved_at: handles.runtime.now(),
            };
            match begin_checked_session(&handles, checked, client.as_ref(), &headers).await {
                Ok(cookies) => Ok(with_cookies(ready, cookies)),
                Err(error) => {
                    tracing::warn!(%error, "failed to sign in after account setup");
                    Ok(ready)
                }
            }
        }
        Err(StoreError::Refused(taken @ Refusal::EmailTaken)) => {
            let faults = SetupFormErrors {
                email: Some(taken.to_string()),
                ..SetupFormErrors::default()
            };
            let page = FormPage::new(&handles, &link, &typed, faults);
            Ok(page.answer(&handles.own_origin))
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the key of a first owner, whose link names no address.
fn first_key(handles: &DashboardHandles, link: &SetupLink) -> Option<(ApiKey, KeyText)> {
    let is_first_owner = link.email.is_none();
    is_first_owner.then(|| {
        let permission = permission_for_role(link.role);
        let (name, environment) = ("First key", Environment::Live);
        let runtime = &handles.runtime;
        runtime.new_private_key(link.organization, name, permission, environment)
    })
}

/// Returns the first key's permission, which is never more than the user's role allows.
const fn permission_for_role(role: Role) -> Permission {
    match role {
        Role::Owner | Role::Admin => Permission::Full,
        Role::Analyst => Permission::ReadOnly,
        Role::Viewer => Permission::Analytics,
    }
}
