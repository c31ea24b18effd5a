//! Reads for an export of a person's data.

use super::EngineTransaction;
use std::collections::BTreeMap;
use tributary_domain::access::Environment;
use tributary_domain::billing::Chain;
use tributary_domain::device::{DeviceRef, UserKey};
use tributary_domain::event::Event;
use tributary_domain::install::DeviceState;
use tributary_domain::personal_data::{EventReferences, UserLink};
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_store::personal_data::{EventOwner, PersonDeviceDetails};

/// Rows about a person.
pub trait PersonTable: EngineTransaction {
    /// Returns a device's state, without locking it.
    async fn device_state(&self, device: DeviceRef<'_>) -> Result<DeviceState, Self::Failure>;

    /// Returns the references from a device's events, at most `limit` of each kind.
    async fn references_of_device(
        &self,
        device: DeviceRef<'_>,
        limit: usize,
    ) -> Result<EventReferences, Self::Failure>;

    /// Returns the references from events that have one of these users and no device, or an erased
    /// one, at most `limit` of each kind.
    async fn references_of_users(
        &self,
        scope: (AppId, Environment),
        users: &[UserKey],
        limit: usize,
    ) -> Result<EventReferences, Self::Failure>;

    /// Returns a device's links to users, whether they are used or not.
    async fn links_of_device(&self, device: DeviceRef<'_>) -> Result<Vec<UserLink>, Self::Failure>;

    /// Returns a user's links to devices, whether they are used or not.
    async fn links_of_user(
        &self,
        scope: (AppId, Environment),
        user: &UserKey,
    ) -> Result<Vec<UserLink>, Self::Failure>;

    /// Returns what is stored about a device beside its state and its cohort.
    async fn person_device_details(
        &self,
        device: DeviceRef<'_>,
    ) -> Result<PersonDeviceDetails, Self::Failure>;

    /// Returns the received bodies of a subscription's notifications by external id.
    async fn notification_bodies(
        &self,
        chain: &Chain,
    ) -> Result<BTreeMap<String, String>, Self::Failure>;

    /// Returns the events of a device or user after an id, in id order.
    async fn events_of_person(
        &self,
        scope: (AppId, Environment),
        owner: &EventOwner,
        after: Option<EventId>,
        limit: usize,
    ) -> Result<Vec<Event>, Self::Failure>;
}
