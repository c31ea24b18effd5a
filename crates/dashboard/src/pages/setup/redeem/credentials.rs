//! How the new account signs in: with a password, or with a passkey and no password.

use super::super::ValidLink;
use super::super::form_page::SetupFormErrors;
use crate::access::count_new_password;
use crate::access::passkey::{check_new_passkey, has_new_passkey};
use crate::failure::Failure;
use crate::pages::passkeys::first_factor;
use crate::pages::sign_in::organization_names;
use crate::password::salt_of;
use crate::state::DashboardHandles;
use axum::http::HeaderMap;
use tributary_domain::access::credential::SignInCredential;
use tributary_domain::access::factor::Factor;
use tributary_domain::access::person::{Email, check_password};
use tributary_domain::access::single_sign_on::no_password_hash;
use tributary_domain::vocabulary::fault::Problem;
use tributary_domain::vocabulary::id::UserId;
use tributary_fields::Form;

/// A valid form.
pub(super) struct NewAccount {
    pub(super) user: UserId,
    pub(super) email: Email,
    pub(super) password_hash: String,
    pub(super) passkey: Option<Factor>,
}

impl NewAccount {
    /// Reads the form. An address in the link overrides that in the form.
    pub(super) async fn read(
        handles: &DashboardHandles,
        link: &ValidLink,
        form: &Form,
        headers: &HeaderMap,
    ) -> Result<Result<Self, SetupFormErrors>, Failure> {
        let typed = form.field("email");
        let given = link.link.email.clone();
        let email = given.map_or_else(|| Email::parse(&typed), Ok);
        if has_new_passkey(form) {
            Self::with_passkey(handles, email, form, headers).await
        } else {
            Self::with_password(handles, link, email, form).await
        }
    }

    async fn with_passkey(
        handles: &DashboardHandles,
        email: Result<Email, Problem>,
        form: &Form,
        headers: &HeaderMap,
    ) -> Result<Result<Self, SetupFormErrors>, Failure> {
        let checked = check_new_passkey(handles, form, headers);
        let (email, (passkey, user)) = match (email, checked) {
            (Ok(email), Ok(checked)) => (email, checked),
            (email, checked) => {
                return Ok(Err(SetupFormErrors {
                    email: email.err().map(|problem| problem.message),
                    passkey: checked.err().map(|fault| fault.to_string()),
                    ..SetupFormErrors::default()
                }));
            }
        };
        let salt = salt_for(handles, &email).await?;
        Ok(Ok(Self {
            user,
            email,
            password_hash: no_password_hash(salt),
            passkey: Some(first_factor(handles, user, passkey)),
        }))
    }

    async fn with_password(
        handles: &DashboardHandles,
        link: &ValidLink,
        email: Result<Email, Problem>,
        form: &Form,
    ) -> Result<Result<Self, SetupFormErrors>, Failure> {
        let (typed, password) = (form.field("email"), form.field("password"));
        let known = email.as_ref().map_or(typed.as_str(), Email::as_str);
        let organizations = organization_names(handles, &[link.link.organization]).await?;
        let checked = check_password(&password, known, &organizations);
        let email = match (email, checked) {
            (Ok(email), Ok(())) => email,
            (email, checked) => {
                return Ok(Err(SetupFormErrors {
                    email: email.err().map(|problem| problem.message),
                    password: checked.err().map(|problem| problem.message),
                    ..SetupFormErrors::default()
                }));
            }
        };
        let salt = salt_for(handles, &email).await?;
        let hashed = handles.hasher.hash(password, salt).await;
        let password_hash = hashed.map_err(|error| {
            tracing::error!(%error, "failed to hash password");
            Failure::Internal
        })?;
        // Before the account exists: a failure afterwards would hide the key, which is shown once.
        count_new_password(handles, &email).await?;
        Ok(Ok(Self {
            user: UserId::new(handles.runtime.now(), handles.runtime.random_bytes()),
            email,
            password_hash,
            passkey: None,
        }))
    }

    /// Returns what the first session begins with.
    pub(super) fn credential(&self) -> SignInCredential {
        match &self.passkey {
            Some(passkey) => SignInCredential::Passkey(passkey.id),
            // A new account has no second factor.
            None => SignInCredential::Password {
                hash: self.password_hash.clone(),
                has_second_step: false,
            },
        }
    }
}

/// The accounts of an address share their salt; see `password::Hasher::verify`.
async fn salt_for(handles: &DashboardHandles, email: &Email) -> Result<[u8; 16], Failure> {
    let accounts = handles.store.users_by_email(email).await?;
    let salt = accounts.iter().find_map(|(_, hash)| salt_of(hash));
    Ok(salt.unwrap_or_else(|| handles.runtime.random_bytes()))
}
