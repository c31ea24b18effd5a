//! Somebody who sends a form.
//!
//! A form is taken when it was sent from a page of ours, by somebody who is signed in, carries the token of that
//! very session, and the person's role carries the scope. There is no other way to a form of a signed-in person, so
//! no handler can forget one of the four.

use super::{Reader, Visitor};
use crate::failure::Failure;
use crate::form::receive;
use crate::query::Query;
use crate::same_origin::SameOrigin;
use crate::state::Handles;
use axum::extract::{FromRequest, FromRequestParts, Request};
use std::ops::Deref;
use tributary_domain::access::Scope;
use tributary_domain::audit::Origin;
use tributary_fields::Form;

/// The field that carries the token.
const FORM_TOKEN: &str = "formToken";

/// A form, by somebody whose role carries scope `S`.
pub(crate) struct Posted<S> {
    pub(crate) reader: Reader<S>,
    pub(crate) form: Form,
}

impl<S> Posted<S> {
    /// From where the change comes.
    pub(crate) fn origin(&self, handles: &Handles) -> Origin {
        self.visitor.origin(handles)
    }
}

impl<S> Deref for Posted<S> {
    type Target = Reader<S>;

    fn deref(&self) -> &Reader<S> {
        &self.reader
    }
}

impl<S: Scope> FromRequest<Handles> for Posted<S> {
    type Rejection = Failure;

    async fn from_request(request: Request, handles: &Handles) -> Result<Self, Failure> {
        let (mut parts, body) = request.into_parts();
        SameOrigin::from_request_parts(&mut parts, handles).await?;
        let visitor = Visitor::from_request_parts(&mut parts, handles).await?;
        let query = Query::of(parts.uri.query());
        let form = receive(&parts.headers, body, handles).await?;
        let token = form.field(FORM_TOKEN);
        if !handles.keyring.is_form_token(visitor.session, &token) {
            tracing::warn!(user = %visitor.user.id, "a form without its token");
            return Err(Failure::FormExpired);
        }
        let reader = Reader::with(visitor, query, &mut parts, handles).await?;
        Ok(Self { reader, form })
    }
}
