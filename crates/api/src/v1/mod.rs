//! `/api/v1`: one folder per resource, one file per operation.
//!
//! # Adding an operation
//!
//! 1. Add a file named after the verb to the resource's folder. Order: input types, OpenAPI
//!    description with all possible errors, handler.
//! 2. Take a [`Caller`](crate::caller::Caller) with the required scope as the first argument, or a
//!    [`ReportCaller`](crate::caller::ReportCaller) if the operation reads many rows.
//! 3. Add a line to [`router`] and a row to the acceptance tests' table of routes, and run
//!    `tributary openapi > openapi.yaml`.

mod apps;
mod attribution;
mod audit_log;
mod billing;
mod cohorts;
mod cost_sources;
mod costs;
mod deliveries;
mod devices;
mod events;
pub(crate) mod export;
mod held;
mod integrations;
mod keys;
mod links;
mod notices;
mod overview;
mod personal_data;
mod portfolio;
mod sdk_keys;
mod stats;
mod undelivered;

pub(crate) mod skan;
pub(crate) mod web_events;

use crate::state::ApiState;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Returns the routes and their OpenAPI description.
pub(crate) fn router() -> OpenApiRouter<ApiState> {
    OpenApiRouter::new()
        .routes(routes!(apps::list::list, apps::create::create))
        .routes(routes!(apps::get::get, apps::update::update))
        .routes(routes!(apps::alert_webhook::alert_webhook))
        .routes(routes!(apps::alert_webhook::rotate))
        .routes(routes!(apps::identity_secret::make))
        .routes(routes!(apps::verify_link_domain::verify))
        .routes(routes!(sdk_keys::list::list))
        .routes(routes!(sdk_keys::rotate::rotate))
        .routes(routes!(sdk_keys::revoke::revoke))
        .routes(routes!(attribution::what_if::what_if))
        .routes(routes!(billing::get::get))
        .routes(routes!(billing::secret::make))
        .routes(routes!(keys::list::list, keys::create::create))
        .routes(routes!(keys::get::get, keys::delete::delete))
        .routes(routes!(keys::rotate::rotate))
        .routes(routes!(links::list::list, links::create::create))
        .routes(routes!(
            links::get::get,
            links::update::update,
            links::delete::delete
        ))
        .routes(routes!(links::bulk::create))
        .routes(routes!(links::qr::svg))
        .routes(routes!(links::qr::png))
        .routes(routes!(notices::list::list, notices::create::create))
        .routes(routes!(
            notices::get::get,
            notices::replace::replace,
            notices::delete::delete
        ))
        .routes(routes!(notices::preview::preview))
        .routes(routes!(notices::test::test))
        .routes(routes!(integrations::list::list))
        .routes(routes!(
            integrations::get::get,
            integrations::update::update
        ))
        .routes(routes!(integrations::resume::resume))
        .routes(routes!(integrations::test::test))
        .routes(routes!(deliveries::list::list))
        .routes(routes!(deliveries::get::get))
        .routes(routes!(deliveries::retry::retry))
        .routes(routes!(deliveries::retry_many::retry_many))
        .routes(routes!(undelivered::get::get))
        .routes(routes!(
            skan::get::get,
            skan::replace::replace,
            skan::update::update
        ))
        .routes(routes!(skan::versions::versions))
        .routes(routes!(skan::postbacks::list))
        .routes(routes!(skan::stats::stats))
        .routes(routes!(skan::evaluate::try_out))
        .routes(routes!(skan::presets::presets))
        .routes(routes!(stats::list::list))
        .routes(routes!(events::list::list))
        .routes(routes!(overview::get::get))
        .routes(routes!(cohorts::list::list))
        .routes(routes!(cost_sources::list::list))
        .routes(routes!(
            cost_sources::get::get,
            cost_sources::replace::replace,
            cost_sources::delete::delete
        ))
        .routes(routes!(cost_sources::pull::pull))
        .routes(routes!(costs::list::list, costs::replace::replace))
        .routes(routes!(export::get::get))
        .routes(routes!(portfolio::list::list))
        .routes(routes!(web_events::accept::accept))
        .routes(routes!(web_events::validate::validate))
        .routes(routes!(devices::get::get, devices::delete::delete))
        .routes(routes!(personal_data::device::export))
        .routes(routes!(personal_data::user::export))
        .routes(routes!(held::list::list))
        .routes(routes!(held::decide::decide))
        .routes(routes!(held::decide_many::decide_many))
        .routes(routes!(audit_log::list::list))
        .routes(routes!(audit_log::export::export))
}
