//! The event that a device's first call records.

use super::{Attribution, ConfigureCommand};
use crate::device::{Device, Identity};
use crate::event::{Event, EventSource, name};

/// Builds the `install` event of a device's first call. Its consent is the one that the call reports,
/// if the user was asked, so that a later grant does not make the install sendable.
pub(super) fn install(
    command: &ConfigureCommand,
    device: &Device,
    identity: &Identity,
    attribution: &Attribution,
) -> Event {
    Event {
        id: command.install_id,
        external_id: command.install_id.to_string(),
        app: command.app,
        environment: command.environment,
        source: EventSource::Sdk,
        name: name::INSTALL.to_owned(),
        original_name: None,
        occurred_at: command.at,
        received_at: command.at,
        device: Some(device.key.clone()),
        user: identity.user.clone(),
        platform: Some(device.traits.platform),
        country: device.country.clone(),
        revenue: None,
        credit: Some(attribution.credit()),
        params: None,
        first_payment: false,
        is_service_install: true,
        duplicate_of: None,
        dedup_root: None,
        consent: Some(command.consent).filter(|consent| consent.is_reported()),
        skipped: Vec::new(),
        website: None,
    }
}
