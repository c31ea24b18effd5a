//! The web pages: front page, account setup, and the dashboard.
//!
//! A page is a file under `pages/`, named after its URL, and a template with the same name.
//! Templates escape all values. In addition, the content security policy forbids inline scripts and
//! styles.
//!
//! # Adding a page
//!
//! 1. Write `templates/<name>.html` extending `app.html`, or `base.html` for pages without sign-in.
//!    No `style` attribute, no inline script, and `|safe` only on a rendered template.
//! 2. Write `pages/<name>.rs`: who may see it (`access::PageContext`, or `access::ReportContext` if
//!    it reads many rows), who may submit its forms (`access::FormSubmission`), the store queries,
//!    and the template struct.
//! 3. Add the route in [`Dashboard::router`], and list the page in `PAGES` in `tests.rs`.

#![expect(
    clippy::trivially_copy_pass_by_ref,
    clippy::unused_self,
    reason = "templates call methods of their page and pass references from loops"
)]

mod access;
mod analysis;
mod assets;
mod chart;
mod data_begin;
mod failure;
mod filter_value;
mod form;
mod form_state;
mod icons;
mod metric;
mod network_label;
mod pages;
mod paging;
mod password;
mod query;
mod range;
mod response;
mod same_origin;
mod sealing;
mod shell;
mod sign_on;
mod sparkline;
mod state;
mod text;
mod value_names;
mod views;

#[cfg(test)]
mod testing;

pub use password::hash as password_hash;
pub use sign_on::{CodeRedemption, ProviderFuture, RedeemedCode, SignOnProviders};
pub use state::{
    AccountMailFuture, ConnectionTest, ConnectionTestFuture, DashboardState, DomainLookup,
    DomainLookupFuture, NoticeMessages, NoticePreviewFuture, NoticeTestFuture, SendAccountMail,
};

use access::{FailedRequest, keep_menu};
use axum::Router;
use axum::http::{HeaderMap, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use failure::Failure;
use pages::{
    account, app, audit_log, confirm, conversion_values, deliveries, device, device_erasure,
    events, factors, forgot, front, held, home, integrations, keys, links, notices, passkeys,
    personal_data, portfolio, reset, sdk_keys, second_step, settings, setup, sign_in, sign_out,
    single_sign_on, team, undelivered, what_if,
};
use state::DashboardHandles;

/// The dashboard with its dependencies.
#[derive(Clone)]
pub struct Dashboard(DashboardHandles);

impl Dashboard {
    /// Builds the dashboard.
    pub fn new(state: DashboardState) -> Self {
        Self(DashboardHandles::new(state))
    }

    /// Returns the routes for all pages. The server merges them into its router, whose layers add
    /// the request id and the common headers.
    pub fn router<S: Clone + Send + Sync + 'static>(&self) -> Router<S> {
        let handles = self.0.clone();
        Router::new()
            .route("/", get(front::show))
            .route("/forgot", get(forgot::show).post(forgot::request))
            .route("/setup/{token}", get(setup::show).post(setup::redeem))
            .route("/reset/{token}", get(reset::show).post(reset::redeem))
            .route("/shared/{token}", get(app::overview::shared::show))
            .route("/static/{file}", get(assets::serve))
            .merge(organization_routes())
            .merge(app_routes())
            .layer(from_fn_with_state(handles.clone(), keep_menu))
            .with_state(handles)
    }

    /// Returns the page for a request whose path no router knows.
    pub async fn no_such_path_page(self, uri: Uri, headers: HeaderMap) -> Response {
        self.unmatched(Failure::NotFound, uri, headers).await
    }

    /// Returns the page for a request whose path does not support the method: usually the target of a
    /// form that was opened as a page.
    pub async fn no_such_method_page(self, uri: Uri, headers: HeaderMap) -> Response {
        self.unmatched(Failure::FormAsPage, uri, headers).await
    }

    async fn unmatched(self, failure: Failure, uri: Uri, headers: HeaderMap) -> Response {
        let request = FailedRequest {
            uri,
            headers,
            is_safe: true,
        };
        request.add_menu(failure.into_response(), &self.0).await
    }
}

/// Routes for the organization and the account.
fn organization_routes() -> Router<DashboardHandles> {
    Router::new()
        .route("/sign-in", get(sign_in::show).post(sign_in::sign_in))
        .route(
            "/sign-in/code",
            get(second_step::show).post(second_step::submit),
        )
        .route("/sign-in/passkey", post(passkeys::sign_in))
        .route("/passkey/challenge", post(passkeys::challenge))
        .merge(single_sign_on_routes())
        .route("/sign-out", post(sign_out::sign_out))
        .route("/home", get(home::show))
        .route("/account", get(account::show))
        .route("/account/password", post(account::change_password))
        .route("/account/first-password", post(account::choose_password))
        .route("/account/passkeys", get(passkeys::show).post(passkeys::add))
        .route(
            "/account/authenticator",
            get(factors::show_authenticator).post(factors::add_authenticator),
        )
        .route("/account/recovery-codes", post(factors::replace_codes))
        .route("/account/factors/{factor}/remove", post(factors::remove))
        .route("/account/confirm", post(confirm::confirm))
        .route("/account/sessions", post(account::end_sessions))
        .route("/team", get(team::show))
        .route("/team/second-factor", post(team::require_second_factor))
        .route("/team/invite", post(team::invite))
        .route(
            "/team/invitations/{invitation}/withdraw",
            post(team::withdraw),
        )
        .route("/team/{member}/role", post(team::change_role))
        .route("/team/{member}/remove", post(team::remove))
        .route("/team/{member}/sessions", post(team::end_sessions))
        .route("/keys", get(keys::show).post(keys::create))
        .route("/keys/{key}/revoke", post(keys::revoke))
        .route("/keys/{key}/rotate", post(keys::rotate))
        .route("/keys/{key}/take-over", post(keys::take_over))
        .route("/audit-log", get(audit_log::show))
        .route("/portfolio", get(portfolio::show))
        .route("/apps/new", get(app::new::show).post(app::new::create))
}

/// Routes for single sign-on.
fn single_sign_on_routes() -> Router<DashboardHandles> {
    Router::new()
        .route(
            "/sign-in/sso/{organization}",
            get(single_sign_on::show).post(single_sign_on::begin),
        )
        .route(
            "/sign-in/sso/{organization}/callback",
            get(single_sign_on::complete),
        )
        .route(
            "/team/single-sign-on",
            get(single_sign_on::show_settings).post(single_sign_on::save),
        )
        .route("/team/single-sign-on/test", post(single_sign_on::test))
        .route(
            "/team/single-sign-on/connect",
            post(single_sign_on::connect),
        )
        .route("/team/single-sign-on/remove", post(single_sign_on::remove))
}

/// Routes for one app.
fn app_routes() -> Router<DashboardHandles> {
    let pages = Router::new()
        .route("/start", get(app::start::show))
        .route("/events", get(events::list::show))
        .route("/events.csv", get(events::export::csv))
        .route("/events/rows", get(events::list::rows))
        .route("/events/{event}", get(events::detail::show))
        .route("/devices/{device}", get(device::show))
        .route("/devices/{device}/data", get(personal_data::of_device))
        .route("/devices/{device}/erase", post(device_erasure::erase))
        .route("/users/{user}/data", get(personal_data::of_user))
        .route("/links", get(links::list::show))
        .route(
            "/links/new",
            get(links::create::show).post(links::create::create),
        )
        .route("/links/preview", post(links::preview::preview))
        .route(
            "/links/bulk",
            get(links::bulk::show).post(links::bulk::submit),
        )
        .route(
            "/links/{link}",
            get(links::update::show).post(links::update::update),
        )
        .route("/links/{link}/delete", post(links::update::delete))
        .route("/links/{link}/qr.svg", get(links::qr::svg))
        .route("/links/{link}/qr.png", get(links::qr::png))
        .merge(notice_routes())
        .route("/integrations", get(integrations::list::show))
        .route(
            "/integrations/{network}",
            get(integrations::network::show).post(integrations::network::update),
        )
        .route(
            "/integrations/{network}/test",
            post(integrations::connection_test::test),
        )
        .route(
            "/integrations/{network}/resume",
            post(integrations::network::resume),
        )
        .route(
            "/conversion-values",
            get(conversion_values::page::show).post(conversion_values::page::save),
        )
        .route(
            "/conversion-values/check",
            post(conversion_values::page::check),
        )
        .route(
            "/conversion-values/edit",
            post(conversion_values::page::edit),
        )
        .route(
            "/conversion-values/preset",
            post(conversion_values::page::preset),
        )
        .route(
            "/conversion-values/postbacks",
            get(conversion_values::postbacks::show),
        )
        .route(
            "/integrations/billing/{provider}",
            post(integrations::billing::update),
        )
        .route(
            "/integrations/billing/{provider}/secret",
            post(integrations::billing::create_secret),
        )
        .route("/deliveries", get(deliveries::show))
        .route("/deliveries/retry", post(deliveries::retry_many))
        .route("/deliveries/{delivery}/retry", post(deliveries::retry))
        .route("/undelivered", get(undelivered::show))
        .route("/held", get(held::show))
        .route("/held/decisions", post(held::decide_many))
        .route("/held/{device}/decision", post(held::decide))
        .merge(report_routes())
        .merge(cost_routes())
        .merge(settings_routes());
    Router::new().nest("/apps/{app}", pages)
}

/// Routes for the reports of one app.
fn report_routes() -> Router<DashboardHandles> {
    Router::new()
        .route("/", get(app::overview::show))
        .route("/explore", get(app::explore::show))
        .route("/explore.csv", get(app::explore::csv))
        .route("/cohorts", get(app::cohorts::show))
        .route("/cohorts.csv", get(app::cohorts::csv))
        .route("/views", post(app::saved_views::save))
        .route("/views/{view}/delete", post(app::saved_views::delete))
        .route("/shares", get(app::shares::show).post(app::shares::create))
        .route("/shares/{share}/revoke", post(app::shares::revoke))
}

/// Routes for the costs of one app.
fn cost_routes() -> Router<DashboardHandles> {
    Router::new()
        .route("/costs", get(app::costs::show).post(app::costs::put))
        .route(
            "/costs/{network}",
            get(app::costs::source::show).post(app::costs::source::update),
        )
        .route("/costs/{network}/pull", post(app::costs::source::pull))
        .route("/costs/{network}/remove", post(app::costs::source::remove))
}

/// Routes for the reports and alerts of one app.
fn notice_routes() -> Router<DashboardHandles> {
    Router::new()
        .route("/notices", get(notices::list::show))
        .route(
            "/notices/new",
            get(notices::edit::show_new).post(notices::edit::create),
        )
        .route("/notices/preview", post(notices::preview::preview))
        .route(
            "/notices/{notice}",
            get(notices::edit::show).post(notices::edit::update),
        )
        .route("/notices/{notice}/test", post(notices::edit::test))
        .route("/notices/{notice}/delete", post(notices::edit::delete))
}

/// Routes for the settings of one app.
fn settings_routes() -> Router<DashboardHandles> {
    Router::new()
        .route("/settings", get(settings::show).post(settings::update))
        .route("/settings/link-domain", post(settings::verify_link_domain))
        .route(
            "/settings/identity-secret",
            post(settings::create_identity_secret),
        )
        .route("/settings/sdk-keys/rotate", post(sdk_keys::rotate))
        .route("/settings/sdk-keys/revoke", post(sdk_keys::revoke))
        .route("/settings/what-if", get(what_if::show))
        .route("/settings/mapping", get(integrations::mapping::show))
        .route(
            "/settings/mapping/{network}",
            post(integrations::mapping::update),
        )
}

#[cfg(test)]
mod conflict_tests;
#[cfg(test)]
mod environment_tests;
#[cfg(test)]
mod factor_tests;
#[cfg(test)]
mod passkey_tests;
#[cfg(test)]
mod proof_tests;
#[cfg(test)]
mod report_tests;
#[cfg(test)]
mod sign_in_tests;
#[cfg(test)]
mod tests;
