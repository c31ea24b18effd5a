//! Authentication and authorization. Store methods require an `Authorized` value, which only these
//! extractors provide, so a handler cannot skip them.

mod account_mail;
mod busy;
pub(crate) mod cookie;
mod current_session;
mod failed_request;
mod form_submission;
mod guess;
mod link_token;
mod page_context;
pub(crate) mod passkey;
mod proof;
mod second_step;
pub(crate) mod sign_on_cookie;

pub(crate) use account_mail::{AccountMail, answer_reset};
pub(crate) use current_session::{CurrentSession, change_origin, session_client};
pub(crate) use failed_request::{FailedRequest, keep_menu};
pub(crate) use form_submission::FormSubmission;
pub(crate) use guess::{
    AllowedSignIn, PasswordCheck, allow_sign_in, audit_failure, check_own_password,
    count_network_guess, count_new_password, is_guessing, trusted_browser,
};
pub(crate) use link_token::link_token;
pub(crate) use page_context::{ENVIRONMENT, ExportContext, LogContext, PageContext, ReportContext};
pub(crate) use proof::confirm_page;
pub(crate) use second_step::{CodeCheck, check_code, count_code_guess};
