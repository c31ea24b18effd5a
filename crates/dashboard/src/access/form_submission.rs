//! An authorized form submission.
//!
//! A form is accepted if it comes from our own origin, with a valid session and that session's form
//! token, and the user's role has the required scope. A sensitive form also needs a recent proof of who
//! the user is. This extractor checks all conditions, so no handler can skip one.

use super::{CurrentSession, PageContext, proof};
use crate::failure::Failure;
use crate::form::receive;
use crate::query::UrlQuery;
use crate::same_origin::SameOrigin;
use crate::state::DashboardHandles;
use axum::extract::{FromRequest, FromRequestParts, Request};
use std::ops::Deref;
use tributary_domain::access::{Actor, Scope};
use tributary_domain::audit::AuditContext;
use tributary_fields::Form;
use tributary_store::ChangeNote;

/// Form field with the session's form token (CSRF protection).
const FORM_TOKEN: &str = "formToken";

/// A form submitted by a user whose role has scope `S`.
pub(crate) struct FormSubmission<S> {
    pub(crate) context: PageContext<S>,
    pub(crate) form: Form,
    _change: ChangeNote,
}

impl<S> FormSubmission<S> {
    /// Returns the origin of the change for the audit log.
    pub(crate) fn origin(&self, handles: &DashboardHandles) -> AuditContext {
        self.session.origin(handles)
    }
}

impl<S> Deref for FormSubmission<S> {
    type Target = PageContext<S>;

    fn deref(&self) -> &PageContext<S> {
        &self.context
    }
}

impl<S: Scope> FromRequest<DashboardHandles> for FormSubmission<S> {
    type Rejection = Failure;

    async fn from_request(request: Request, handles: &DashboardHandles) -> Result<Self, Failure> {
        let (mut parts, body) = request.into_parts();
        SameOrigin::from_request_parts(&mut parts, handles).await?;
        let session = CurrentSession::from_request_parts(&mut parts, handles).await?;
        let query = UrlQuery::of(parts.uri.query());
        let form = receive(&parts.headers, body, handles).await?;
        let token = form.field(FORM_TOKEN);
        if !handles.keyring.is_form_token(session.token_digest, &token) {
            tracing::warn!(user = %session.user.id, "rejected form without a valid form token");
            return Err(Failure::FormExpired);
        }
        let change = ChangeNote::new(handles.store.clone(), Actor::User(session.user.id));
        let context = PageContext::for_session(session, query, &mut parts, handles).await?;
        let form = proof::require_for_form(&context, form, &mut parts, handles).await?;
        Ok(Self {
            context,
            form,
            _change: change,
        })
    }
}
