//! The setup form with its validation errors.

use super::ValidLink;
use crate::access::passkey::PasskeyOffer;
use crate::response::app_page;
use crate::state::{DashboardHandles, OwnOrigin};
use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use tributary_domain::access::person::{Email, PASSWORD_CHARS_MIN, Role};

/// The form. Typed passwords are never sent back, so this struct does not contain one.
#[derive(Template)]
#[template(path = "setup.html")]
pub(super) struct FormPage<'a> {
    role: &'static str,
    /// The typed address, or the address in the link.
    email: &'a str,
    /// Whether the address comes from the link and cannot be changed.
    email_is_given: bool,
    password_min: usize,
    /// How to use a passkey instead of a password.
    passkey: Option<PasskeyOffer>,
    faults: SetupFormErrors,
}

/// Validation errors by field.
#[derive(Debug, Default)]
pub(super) struct SetupFormErrors {
    pub(super) email: Option<String>,
    pub(super) password: Option<String>,
    pub(super) passkey: Option<String>,
}

impl<'a> FormPage<'a> {
    /// Builds the form. `typed` is the address to show, unless the link was created for an address.
    pub(super) fn new(
        handles: &DashboardHandles,
        link: &'a ValidLink,
        typed: &'a str,
        faults: SetupFormErrors,
    ) -> Self {
        let given = link.link.email.as_ref();
        Self {
            role: match link.link.role {
                Role::Owner => "an owner",
                Role::Admin => "an administrator",
                Role::Analyst => "an analyst",
                Role::Viewer => "a viewer",
            },
            email: given.map_or(typed, Email::as_str),
            email_is_given: given.is_some(),
            password_min: PASSWORD_CHARS_MIN,
            passkey: PasskeyOffer::of(handles, &[]),
            faults,
        }
    }

    fn has_fault(&self) -> bool {
        let faults = &self.faults;
        faults.email.is_some() || faults.password.is_some() || faults.passkey.is_some()
    }

    /// Renders the form, with status 422 if there are errors.
    pub(super) fn answer(&self, own_origin: &OwnOrigin) -> Response {
        let status = if self.has_fault() {
            StatusCode::UNPROCESSABLE_ENTITY
        } else {
            StatusCode::OK
        };
        app_page(status, self, own_origin.is_trustworthy())
    }
}
