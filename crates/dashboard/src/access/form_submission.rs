//! Somebody who sends a form.
//!
//! A form is taken when it was sent from a page of ours, by somebody who is signed in, carries the token of that
//! very session, and the person's role carries the scope. There is no other way to a form of a signed-in person, so
//! no handler can forget one of the four.

use super::{CurrentSession, PageContext};
use crate::failure::Failure;
use crate::form::receive;
use crate::query::UrlQuery;
use crate::same_origin::SameOrigin;
use crate::state::DashboardHandles;
use axum::extract::{FromRequest, FromRequestParts, Request};
use std::ops::Deref;
use tributary_domain::access::Scope;
use tributary_domain::audit::AuditContext;
use tributary_fields::Form;

/// The field that carries the token.
const FORM_TOKEN: &str = "formToken";

/// A form, by somebody whose role carries scope `S`.
pub(crate) struct FormSubmission<S> {
    pub(crate) context: PageContext<S>,
    pub(crate) form: Form,
}

impl<S> FormSubmission<S> {
    /// From where the change comes.
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
        let visitor = CurrentSession::from_request_parts(&mut parts, handles).await?;
        let query = UrlQuery::of(parts.uri.query());
        let form = receive(&parts.headers, body, handles).await?;
        let token = form.field(FORM_TOKEN);
        if !handles.keyring.is_form_token(visitor.token_digest, &token) {
            tracing::warn!(user = %visitor.user.id, "a form without its token");
            return Err(Failure::FormExpired);
        }
        let reader = PageContext::for_session(visitor, query, &mut parts, handles).await?;
        Ok(Self {
            context: reader,
            form,
        })
    }
}
