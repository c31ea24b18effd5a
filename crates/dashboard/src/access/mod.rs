//! Authentication and authorization. Store methods require an `Authorized` value, which only these
//! extractors provide, so a handler cannot skip them.

mod busy;
pub(crate) mod cookie;
mod current_session;
mod failed_request;
mod form_submission;
mod guess;
mod page_context;

pub(crate) use current_session::{CurrentSession, change_origin, session_client};
pub(crate) use failed_request::{FailedRequest, keep_menu};
pub(crate) use form_submission::FormSubmission;
pub(crate) use guess::{AllowedSignIn, allow_sign_in, audit_failure, count_new_password};
pub(crate) use page_context::{LogContext, PageContext, ReportContext};
