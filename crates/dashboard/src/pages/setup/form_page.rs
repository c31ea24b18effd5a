//! The form, empty or with what is wrong with it.

use super::ValidLink;
use crate::response::app_page;
use crate::state::OwnOrigin;
use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;
use tributary_domain::access::person::{Email, PASSWORD_CHARS_MIN, Role};

/// The form. It has no field for the password's value: what was typed is never sent back.
#[derive(Template)]
#[template(path = "setup.html")]
pub(super) struct FormPage<'a> {
    role: &'static str,
    /// What was typed, or what the link says.
    email: &'a str,
    /// The link says it, so it is not to be changed.
    email_is_given: bool,
    password_min: usize,
    faults: SetupFormErrors,
}

/// What is wrong, by field.
#[derive(Debug, Default)]
pub(super) struct SetupFormErrors {
    pub(super) email: Option<String>,
    pub(super) password: Option<String>,
}

impl<'a> FormPage<'a> {
    /// The form of a link; `typed` is shown where the link names no address.
    pub(super) fn new(link: &'a ValidLink, typed: &'a str, faults: SetupFormErrors) -> Self {
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
            faults,
        }
    }

    /// As an answer: 422 when something is wrong.
    pub(super) fn answer(&self, own_origin: &OwnOrigin) -> Response {
        let has_fault = self.faults.email.is_some() || self.faults.password.is_some();
        let status = if has_fault {
            StatusCode::UNPROCESSABLE_ENTITY
        } else {
            StatusCode::OK
        };
        app_page(status, self, own_origin.is_trustworthy())
    }
}
