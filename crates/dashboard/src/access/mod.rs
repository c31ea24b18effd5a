//! Who is here, and what they may do. A handler that takes none of these has nothing to ask the store with.

pub(crate) mod cookie;
mod current_session;
mod form_submission;
mod page_context;
mod throttle;

pub(crate) use current_session::{CurrentSession, change_origin};
pub(crate) use form_submission::FormSubmission;
pub(crate) use page_context::PageContext;
pub(crate) use throttle::Throttle;
