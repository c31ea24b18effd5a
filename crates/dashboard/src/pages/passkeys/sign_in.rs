//! `POST /sign-in/passkey` — a full sign-in: the device is one factor, and its check of the user another.

use crate::access::passkey::PresentedPasskey;
use crate::access::{CodeCheck, audit_failure, count_code_guess, count_network_guess};
use crate::failure::Failure;
use crate::pages::sign_in::{
    CheckedSignIn, begin_checked_session, local_path, refuse_sign_in, with_cookies, with_wait,
};
use crate::pages::single_sign_on::provider_instead_of_password;
use crate::response::see_other;
use crate::same_origin::SameOrigin;
use crate::state::DashboardHandles;
use crate::text::retry_message;
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tributary_domain::audit::Client;
use tributary_fields::Form;

/// Checks the passkey and starts a session.
pub(crate) async fn sign_in(
    _: SameOrigin,
    State(handles): State<DashboardHandles>,
    client: Option<Extension<Client>>,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Failure> {
    let next = form.field("next");
    let next = local_path(&next);
    let client = client.map(|Extension(client)| client);
    let address = client.as_ref().map(|client| client.address);
    let refuse = |status, fault| refuse_sign_in(&handles, &headers, next, status, fault);
    let wrong = || {
        let fault = "This passkey was not accepted. Try again, or sign in with your password.";
        refuse(StatusCode::UNPROCESSABLE_ENTITY, fault.to_owned())
    };
    let wait_page = |wait| {
        let page = refuse(StatusCode::TOO_MANY_REQUESTS, retry_message(wait));
        with_wait(page, wait)
    };
    let Some(presented) = PresentedPasskey::find(&handles, &form).await? else {
        tracing::warn!("sign-in with an unknown passkey");
        let wait = count_network_guess(&handles, address).await?;
        return Ok(wait.map_or_else(wrong, wait_page));
    };
    let (user, credential) = (presented.owner().clone(), presented.credential());
    let guess = match count_code_guess(&handles, &user, address, &headers).await? {
        Ok(guess) => guess,
        Err(wait) => return Ok(wait_page(wait)),
    };
    if !matches!(
        presented.check(&handles, None, &headers, guess).await?,
        CodeCheck::Right
    ) {
        audit_failure(&handles, vec![user], client.as_ref());
        return Ok(wrong());
    }
    // The organization may leave sign-ins to its provider.
    let provider = provider_instead_of_password(&handles, user.organization, user.role).await?;
    if let Some(provider) = provider {
        return Ok(see_other(&provider));
    }
    let checked = CheckedSignIn {
        user: user.id,
        credential,
        proved_at: handles.runtime.now(),
    };
    let cookies = begin_checked_session(&handles, checked, client.as_ref(), &headers).await?;
    Ok(with_cookies(see_other(next), cookies))
}
