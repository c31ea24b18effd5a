//! Conversion-value configurations.

use crate::day_values::learn;
use crate::tables::Tables;
use tributary_domain::app::App;
use tributary_domain::audit::{Action, AuditContext};
use tributary_domain::device::DeviceRef;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::cardinality_cap::ValueKind;
use tributary_domain::skan::device::{
    DeviceDocument, RequiredData, build_device_document, window_ends,
};
use tributary_domain::skan::{
    Configuration, ConfigurationUpdate, Document, ReplaceOutcome, differences, patch, replace,
};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::audit_row;

/// Replaces the conversion-value document of an app.
pub async fn put_skan<T: Tables>(
    tables: &T,
    target: (OrganizationId, AppId),
    document: &Document,
    precondition: &Precondition,
    origin: &AuditContext,
) -> Result<Configuration, T::Failure> {
    let decide = |current: &Configuration| replace(current, document.clone(), origin.at);
    change(tables, target, precondition, origin, decide).await
}

/// Changes individual settings in an app's document.
pub async fn patch_skan<T: Tables>(
    tables: &T,
    target: (OrganizationId, AppId),
    (enabled, accept_test_signals): (&Change<bool>, &Change<bool>),
    precondition: &Precondition,
    origin: &AuditContext,
) -> Result<Configuration, T::Failure> {
    let decide = |current: &Configuration| {
        patch(
            current,
            enabled.clone(),
            accept_test_signals.clone(),
            origin.at,
        )
    };
    change(tables, target, precondition, origin, decide).await
}

async fn change<T: Tables>(
    tables: &T,
    (organization, app): (OrganizationId, AppId),
    precondition: &Precondition,
    origin: &AuditContext,
    decide: impl FnOnce(&Configuration) -> ConfigurationUpdate,
) -> Result<Configuration, T::Failure> {
    let app = tables.lock_managed_app(organization, app).await?;
    let current = tables.skan_configuration(&app).await?;
    if !current.satisfies(precondition) {
        return Err(Refusal::VersionConflict.into());
    }
    let ConfigurationUpdate {
        configuration,
        outcome,
    } = decide(&current);
    if outcome == ReplaceOutcome::Unchanged {
        return Ok(configuration);
    }
    tables.write_skan(app.id, &configuration).await?;
    let names = configuration.document.event_names();
    learn(tables, app.id, ValueKind::Name, names).await?;
    let signals = configuration.document.accept_test_signals;
    if let Some(app) = app.with_skan_test_signals(signals, configuration.updated_at) {
        tables.write_app(&app).await?;
    }
    if configuration.version > 0 {
        // A version is stored with its latest names, because postbacks are shown under those names.
        tables
            .write_skan_version(app.id, &configuration, origin.at)
            .await?;
    }
    let (action, changes) = (Action::SkanUpdated, differences(&current, &configuration));
    let row = audit_row(organization, origin, action, Some(app.id), app.id, &changes);
    tables.insert_audit(&row).await?;
    Ok(configuration)
}

/// Reads the document for a device, with the sums of the device's events so far.
pub async fn skan_for_device<T: Tables>(
    tables: &T,
    app: &App,
    device: Option<DeviceRef<'_>>,
    at: Timestamp,
) -> Result<DeviceDocument, T::Failure> {
    let configuration = tables.skan_configuration(app).await?;
    let (wanted, day) = (RequiredData::of(&configuration.document), Day::of(at));
    let currencies = Currency::all().filter(|_| wanted.needs_rates);
    let currencies: Vec<(Currency, Day)> = currencies.map(|one| (one, day)).collect();
    let rates = tables.rates(&currencies).await?;
    let mut sums = Vec::new();
    if let Some(device) = device.filter(|_| wanted.needs_events)
        && let Some(from) = tables.first_seen(device).await?
    {
        sums = tables.event_sums(device, from, window_ends(from)).await?;
    }
    Ok(build_device_document(configuration, day, &rates, &sums))
}
