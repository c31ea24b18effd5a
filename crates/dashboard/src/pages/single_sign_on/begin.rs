//! Begins a sign-in at a provider. A person confirms it first: a link of a stranger must not sign
//! anybody in to the stranger's organization.

use super::{find, redirect_url, sign_in_path};
use crate::access::{FormSubmission, cookie, sign_on_cookie};
use crate::failure::Failure;
use crate::pages::sign_in::local_path;
use crate::query::UrlQuery;
use crate::response::{app_page, page};
use crate::same_origin::SameOrigin;
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use tributary_domain::access::MembersWrite;
use tributary_domain::access::proof::PROOF_LIFETIME;
use tributary_domain::access::single_sign_on::{ProviderFault, SignOnAttempt, SingleSignOn};
use tributary_domain::vocabulary::id::UserId;
use tributary_fields::Form;
use url::Url;

/// Maximum length of the page to show afterwards, which is part of a cookie.
const NEXT_BYTES_MAX: usize = 500;
/// Page of the settings, after an owner has connected the own account.
const SETTINGS: &str = "/team/single-sign-on?notice=connected";

/// The sign-in page of an organization.
#[derive(Template)]
#[template(path = "sign_on.html")]
pub(super) struct SignOnPage {
    organization: String,
    provider: String,
    action: String,
    next: String,
    fault: Option<String>,
}

impl SignOnPage {
    /// Builds the page, with the reason why the last sign-in failed.
    pub(super) async fn load(
        handles: &DashboardHandles,
        settings: &SingleSignOn,
        next: &str,
        fault: Option<String>,
    ) -> Result<Self, Failure> {
        let all = handles.store.organizations().await?.into_iter();
        let mut names = all.filter(|one| one.id == settings.organization);
        let name = names.next().map(|one| one.name.as_str().to_owned());
        let url = Url::parse(settings.issuer.as_str()).ok();
        let host = url.as_ref().and_then(Url::host_str);
        Ok(Self {
            organization: name.unwrap_or_default(),
            provider: host.unwrap_or_default().to_owned(),
            action: sign_in_path(settings.organization),
            next: local_path(next).to_owned(),
            fault,
        })
    }

    /// Renders the page.
    pub(super) fn answer(&self, status: StatusCode, handles: &DashboardHandles) -> Response {
        app_page(status, self, handles.own_origin.is_trustworthy())
    }
}

/// Leads to the provider.
#[derive(Template)]
#[template(path = "sign_on_continue.html")]
struct ContinuePage<'a> {
    host: &'a str,
    url: &'a str,
}

/// Shows the sign-in page of an organization.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    Path(organization): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let settings = find(&handles, &organization).await?;
    let query = UrlQuery::of(query.as_deref());
    let next = query.get("next").unwrap_or_default();
    let page = SignOnPage::load(&handles, &settings, next, None).await?;
    Ok(page.answer(StatusCode::OK, &handles))
}

/// Leads a browser to the provider.
pub(crate) async fn begin(
    _: SameOrigin,
    State(handles): State<DashboardHandles>,
    Path(organization): Path<String>,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Failure> {
    let settings = find(&handles, &organization).await?;
    let next = form.field("next");
    let start = Start {
        connecting: None,
        // A signed-in user who signs in again proves who they are.
        is_repeated: cookie::token(&headers, &handles).is_some(),
        next: &next,
    };
    match to_provider(&handles, &settings, start).await {
        Ok(response) => Ok(response),
        Err(fault) => {
            let text = Some(fault.to_string());
            let page = SignOnPage::load(&handles, &settings, &next, text).await?;
            Ok(page.answer(StatusCode::UNPROCESSABLE_ENTITY, &handles))
        }
    }
}

/// `POST /team/single-sign-on/connect` — connects the own account to the provider.
pub(crate) async fn connect(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<MembersWrite>,
) -> Result<Response, Failure> {
    let organization = submission.authorized.organization();
    let settings = find(&handles, &organization.to_string()).await?;
    let start = Start {
        connecting: Some(submission.session.user.id),
        is_repeated: true,
        next: SETTINGS,
    };
    match to_provider(&handles, &settings, start).await {
        Ok(response) => Ok(response),
        Err(fault) => {
            let text = Some(fault.to_string());
            let page = SignOnPage::load(&handles, &settings, SETTINGS, text).await?;
            Ok(page.answer(StatusCode::UNPROCESSABLE_ENTITY, &handles))
        }
    }
}

/// How a sign-in begins.
struct Start<'a> {
    /// Signed-in user who connects the own account.
    connecting: Option<UserId>,
    /// Whether the provider has to ask for the password even if it knows the browser.
    is_repeated: bool,
    /// Page to show afterwards.
    next: &'a str,
}

/// Returns a page that leads to the provider. A redirect would not do: browsers apply the policy for
/// forms, which allows this server only, to redirects after a form as well.
async fn to_provider(
    handles: &DashboardHandles,
    settings: &SingleSignOn,
    start: Start<'_>,
) -> Result<Response, ProviderFault> {
    let now = handles.runtime.now();
    let sign_in_page = handles.sign_on.sign_in_page(settings.issuer.clone(), now);
    let mut url = sign_in_page.await?;
    let next = local_path(start.next);
    let attempt = SignOnAttempt {
        organization: settings.organization,
        connecting: start.connecting,
        is_repeated: start.is_repeated,
        started_at: now,
        next: if next.len() > NEXT_BYTES_MAX {
            ""
        } else {
            next
        }
        .to_owned(),
        secret: handles.runtime.random_bytes(),
    };
    url.query_pairs_mut()
        .append_pair("response_type", "code")
        .append_pair("scope", "openid email")
        .append_pair("client_id", &settings.client_id)
        .append_pair(
            "redirect_uri",
            &redirect_url(handles, settings.organization),
        )
        .append_pair("state", &attempt.state())
        .append_pair("nonce", &attempt.nonce())
        .append_pair("code_challenge", &attempt.challenge())
        .append_pair("code_challenge_method", "S256");
    if start.is_repeated {
        // With a maximum age, the ID token says when the person last signed in. Without it, the
        // browser could leave out `prompt`, and an old sign-in would pass for a new one.
        let seconds = PROOF_LIFETIME.as_secs().to_string();
        url.query_pairs_mut()
            .append_pair("prompt", "login")
            .append_pair("max_age", &seconds);
    }
    let shown = ContinuePage {
        host: url.host_str().unwrap_or_default(),
        url: url.as_str(),
    };
    let mut response = page(StatusCode::OK, &shown);
    let refresh = HeaderValue::try_from(format!("0; url={url}"));
    let headers = response.headers_mut();
    headers.extend(refresh.ok().map(|value| (header::REFRESH, value)));
    let cookie = sign_on_cookie::set_attempt(handles, &attempt);
    headers.append(header::SET_COOKIE, cookie);
    Ok(response)
}
