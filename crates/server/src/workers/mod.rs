//! Background workers, one module each, run by `periodic`.
//!
//! Every node runs the workers of its roles. Work that only one node may do is leased in the
//! database; everything else is idempotent.

mod ad_services;
mod alerts;
mod audit_chain;
mod audit_stream;
mod clock;
mod cost_sources;
mod deliveries;
mod geo_files;
mod notices;
mod paused_integrations;
mod periodic;
mod pivots;
mod rates;
mod retention;
mod secret_keys;
mod traffic;
mod trials;

use crate::config::Config;
use crate::geo::GeoFiles;
use crate::notices::NoticeService;
use crate::outbound::AddressPolicy;
use crate::system;
use crate::transport::NetworkTransport;
use ad_services::AdServicesWorker;
use alerts::AlertsWorker;
use audit_chain::AuditChainWorker;
use audit_stream::{AuditSink, AuditStreamWorker, FileSink, SyslogSink};
use clock::ClockWorker;
use cost_sources::CostSourcesWorker;
use deliveries::DeliveriesWorker;
use geo_files::GeoFilesWorker;
use notices::NoticesWorker;
use paused_integrations::PausedIntegrationsWorker;
use periodic::Worker;
use pivots::PivotsWorker;
use rates::RatesWorker;
use retention::RetentionWorker;
pub(crate) use secret_keys::{KEYS_FOLLOWED_WITHIN, KeyWatch};
use std::sync::Arc;
use tokio::task::JoinSet;
use traffic::TrafficWorker;
use trials::TrialsWorker;
use tributary_domain::keyring::Keyring;
use tributary_domain::node_role::NodeRoles;
use tributary_domain::runtime::Runtime;
use tributary_forwarder::DueReceiver;
use tributary_store::Store;

/// Names of all workers, as shown in metrics and logs.
pub const NAMES: [&str; 16] = [
    AdServicesWorker::NAME,
    AlertsWorker::NAME,
    AuditChainWorker::NAME,
    FileSink::NAME,
    SyslogSink::NAME,
    ClockWorker::NAME,
    CostSourcesWorker::NAME,
    DeliveriesWorker::NAME,
    NoticesWorker::NAME,
    PausedIntegrationsWorker::NAME,
    PivotsWorker::NAME,
    GeoFilesWorker::NAME,
    RatesWorker::NAME,
    RetentionWorker::NAME,
    TrafficWorker::NAME,
    TrialsWorker::NAME,
];

/// Starts the workers of this node's roles. `due` tells them about due work. Each worker stops when
/// its future from `stop` completes. Wait for the tasks before closing the database.
pub fn start<F: Future<Output = ()> + Send + 'static>(
    config: &Config,
    (store, keyring): (&Arc<dyn Store>, &Keyring),
    geo: Arc<GeoFiles>,
    notices: NoticeService,
    tasks: &mut JoinSet<()>,
    due: &DueReceiver,
    stop: impl Fn() -> F,
) -> anyhow::Result<()> {
    let runtime = &system::runtime();
    let networks = AddressPolicy::allowing(config.networks.allow_private_addresses);
    // Tenants choose these URLs, so the networks' setting for a simulator does not apply to them.
    let webhooks = AddressPolicy::allowing(config.webhooks.allow_private_addresses);
    let rates = RatesWorker::new(store.clone(), runtime.clone(), &config.rates)?;
    let ad_services = AdServicesWorker::new(
        store.clone(),
        runtime.clone(),
        &config.adservices.base_url,
        networks,
    )?;
    let retention = RetentionWorker::new(store.clone(), runtime.clone(), config.retention.clone());
    let alerts = AlertsWorker::new(store.clone(), runtime.clone(), keyring.clone(), webhooks)?;
    let transport = NetworkTransport::new(&config.networks)?;
    let costs = CostSourcesWorker::new(store.clone(), runtime.clone(), keyring.clone(), transport);
    let mut spawner = WorkerSpawner {
        roles: config.roles,
        runtime,
        due,
        tasks,
        stop,
    };
    spawner.spawn(alerts);
    spawner.spawn(AuditChainWorker::new(
        store.clone(),
        runtime.clone(),
        config.retention.audit,
    ));
    if let Some(path) = config.audit.file.clone() {
        let sink = FileSink::new(path);
        spawner.spawn(AuditStreamWorker::new(store.clone(), runtime.clone(), sink));
    }
    if let Some(target) = config.audit.syslog.clone() {
        let sink = SyslogSink::new(target, runtime.clone());
        spawner.spawn(AuditStreamWorker::new(store.clone(), runtime.clone(), sink));
    }
    spawner.spawn(ClockWorker::new(store.clone(), runtime.clone()));
    spawner.spawn(NoticesWorker::new(notices));
    spawner.spawn(costs);
    spawner.spawn(DeliveriesWorker::new(store.clone(), runtime.clone()));
    spawner.spawn(rates);
    spawner.spawn(ad_services);
    spawner.spawn(retention);
    spawner.spawn(TrialsWorker::new(store.clone(), runtime.clone()));
    spawner.spawn(TrafficWorker::new(store.clone(), runtime.clone()));
    spawner.spawn(PivotsWorker::new(store.clone(), runtime.clone()));
    spawner.spawn(PausedIntegrationsWorker::new(store.clone()));
    spawner.spawn(GeoFilesWorker::new(geo));
    Ok(())
}

/// Starts the workers that belong to this node's roles.
struct WorkerSpawner<'a, S> {
    roles: NodeRoles,
    runtime: &'a Runtime,
    due: &'a DueReceiver,
    tasks: &'a mut JoinSet<()>,
    stop: S,
}

impl<F: Future<Output = ()> + Send + 'static, S: Fn() -> F> WorkerSpawner<'_, S> {
    fn spawn<W: Worker + 'static>(&mut self, worker: W) {
        if self.roles.has(W::ROLE) {
            let (runtime, stop) = (self.runtime.clone(), (self.stop)());
            let due = self.due.clone();
            self.tasks.spawn(periodic::run(worker, runtime, due, stop));
        }
    }
}
