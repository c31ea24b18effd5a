//! What the server does by itself, beside answering: a file each, all run by `periodic`.
//!
//! Every node runs all of them. Where two would get in each other's way, the database decides who does what
//! (a lease); everywhere else doing it twice changes nothing.

mod ad_services;
mod alerts;
mod deliveries;
mod geo_files;
mod paused_integrations;
mod periodic;
mod rates;
mod retention;
mod trials;

use crate::config::Config;
use crate::geo::GeoFiles;
use crate::outbound::AddressPolicy;
use ad_services::AdServicesWorker;
use alerts::AlertsWorker;
use deliveries::DeliveriesWorker;
use geo_files::GeoFilesWorker;
use paused_integrations::PausedIntegrationsWorker;
use periodic::Worker as _;
use rates::RatesWorker;
use retention::RetentionWorker;
use std::sync::Arc;
use tokio::task::JoinSet;
use trials::TrialsWorker;
use tributary_domain::keyring::Keyring;
use tributary_domain::runtime::Runtime;
use tributary_store::Store;

/// The names of all of them, as metrics and log lines show them.
pub const NAMES: [&str; 8] = [
    AdServicesWorker::NAME,
    AlertsWorker::NAME,
    DeliveriesWorker::NAME,
    PausedIntegrationsWorker::NAME,
    GeoFilesWorker::NAME,
    RatesWorker::NAME,
    RetentionWorker::NAME,
    TrialsWorker::NAME,
];

/// Starts all of them. Each stops with the future that `stop` makes for it; whoever closes the database
/// waits for the tasks first.
pub fn start<F: Future<Output = ()> + Send + 'static>(
    config: &Config,
    store: &Arc<dyn Store>,
    source: &Runtime,
    keyring: &Keyring,
    places: Arc<GeoFiles>,
    tasks: &mut JoinSet<()>,
    stop: impl Fn() -> F,
) -> anyhow::Result<()> {
    let reach = if config.networks.allow_private_addresses {
        AddressPolicy::Anywhere
    } else {
        AddressPolicy::PublicOnly
    };
    let rates = RatesWorker::new(store.clone(), source.clone(), &config.rates)?;
    let ad_services = AdServicesWorker::new(
        store.clone(),
        source.clone(),
        &config.adservices.base_url,
        reach,
    )?;
    let retention = RetentionWorker::new(store.clone(), source.clone(), config.retention.clone());
    let alerts = AlertsWorker::new(store.clone(), source.clone(), keyring.clone(), reach)?;
    let deliveries = DeliveriesWorker::new(store.clone(), source.clone());
    tasks.spawn(periodic::run(alerts, source.clone(), stop()));
    tasks.spawn(periodic::run(deliveries, source.clone(), stop()));
    tasks.spawn(periodic::run(rates, source.clone(), stop()));
    tasks.spawn(periodic::run(ad_services, source.clone(), stop()));
    tasks.spawn(periodic::run(retention, source.clone(), stop()));
    let trials = TrialsWorker::new(store.clone(), source.clone());
    tasks.spawn(periodic::run(trials, source.clone(), stop()));
    let paused = PausedIntegrationsWorker::new(store.clone());
    tasks.spawn(periodic::run(paused, source.clone(), stop()));
    tasks.spawn(periodic::run(
        GeoFilesWorker::new(places),
        source.clone(),
        stop(),
    ));
    Ok(())
}
