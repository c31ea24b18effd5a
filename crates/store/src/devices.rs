//! Devices, their identities, and the attribution of their installs.

use crate::StoreResult;
use async_trait::async_trait;
use std::time::Duration;
use tributary_domain::access::{AnalyticsRead, Authorized, Environment, PeopleErase};
use tributary_domain::app::{App, SdkKey};
use tributary_domain::attribution::ad_services::AdServices;
use tributary_domain::audit::AuditContext;
use tributary_domain::device::{DeviceKey, IdentityClaim};
use tributary_domain::event::Event;
use tributary_domain::install::{Attribution, ConfigureCommand, DeviceState};
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::refusal::Refusal;
use tributary_domain::skan::Configuration;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::time::Timestamp;

/// Period before an install in which other installs from the same address are counted.
pub const INSTALL_BURST_WINDOW: Duration = Duration::from_hours(1);
/// Maximum number of clicks from one address that are read for a probabilistic match: the newest
/// ones. Of these, unclaimed clicks on the device's platform become candidates first, so that other
/// clicks cannot crowd them out.
pub const ADDRESS_CLICKS_SCANNED_MAX: usize = 1_000;
/// Maximum number of events returned with a device.
pub const DEVICE_EVENTS_MAX: usize = 50;

/// The app and environment that an SDK key belongs to.
#[derive(Debug, Clone)]
pub struct SdkApp {
    /// The app.
    pub app: App,
    /// Live or test.
    pub environment: Environment,
    /// The key.
    pub key: SdkKey,
    /// The app's conversion-value configuration.
    pub skan: Configuration,
    /// Key that decrypts Meta's install referrer, if set.
    pub social_referrer_key: Option<SealedSecret>,
    /// Key that decrypts Play Integrity tokens, if set.
    pub play_decryption_key: Option<SealedSecret>,
    /// Key that verifies Play Integrity tokens, if set.
    pub play_verification_key: Option<SealedSecret>,
    /// Secrets that sign user ids: the current one and the previous one, if set.
    pub identity_secrets: Vec<SealedSecret>,
}

/// Outcome of a `configure` call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigureOutcome {
    /// Whether this was the device's first call.
    pub is_first_open: bool,
    /// Current attribution of the device.
    pub attribution: Attribution,
}

/// A device with its state and latest events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceDetails {
    /// Device, identity and attribution.
    pub state: DeviceState,
    /// Latest events, newest first.
    pub events: Vec<Event>,
    /// Whether older events exist.
    pub has_more_events: bool,
}

impl DeviceDetails {
    /// Builds the details. If `events` has more than [`DEVICE_EVENTS_MAX`] events, the details
    /// contain only the first ones and say that older events exist. Refused when the device is
    /// unknown.
    pub fn new(state: DeviceState, mut events: Vec<Event>) -> Result<Self, Refusal> {
        if state.is_empty() && events.is_empty() {
            return Err(Refusal::DeviceNotFound);
        }
        let has_more_events = events.len() > DEVICE_EVENTS_MAX;
        events.truncate(DEVICE_EVENTS_MAX);
        Ok(Self {
            state,
            events,
            has_more_events,
        })
    }
}

/// A user's request to erase their device.
#[derive(Debug, Clone)]
pub struct EraseRequest {
    /// Organization of the app.
    pub organization: OrganizationId,
    /// App of the device.
    pub app: AppId,
    /// Live or test.
    pub environment: Environment,
    /// Device to erase.
    pub device: DeviceKey,
    /// Proof that the request comes from the device's user.
    pub proof: Digest,
    /// Pseudonym that replaces the device key.
    pub pseudonym: DeviceKey,
    /// Context for the audit log.
    pub origin: AuditContext,
}

/// An AdServices token leased to one worker.
#[derive(Clone, PartialEq, Eq)]
pub struct LeasedToken {
    /// App of the device.
    pub app: AppId,
    /// Live or test.
    pub environment: Environment,
    /// Device that sent the token.
    pub device: DeviceKey,
    /// Token. It must never be logged.
    pub token: String,
    /// When the device sent the token.
    pub received_at: Timestamp,
    /// Number of earlier attempts.
    pub attempts: u32,
    /// End of the lease. A token is settled only if its stored lease still has this end, so a
    /// worker that lost the lease changes nothing.
    pub leased_until: Timestamp,
}

/// Outcome of redeeming a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenOutcome {
    /// Apple's final response.
    Final(AdServices),
    /// Time of the next attempt.
    RetryAt(Timestamp),
}

/// Result of one batch of [`Devices::forget_attributions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttributionSweep {
    /// Devices that were examined.
    pub examined: u64,
    /// Devices that were inactive and lost their attribution data.
    pub forgotten: u64,
}

/// Devices.
#[async_trait]
pub trait Devices: Send + Sync {
    /// Returns the app and environment that an SDK key belongs to, even if the key has ended.
    async fn sdk_app(&self, sdk_key: &str) -> StoreResult<Option<SdkApp>>;

    /// Handles a `configure` call: registers the device, decides its attribution on the first call,
    /// claims the click, and records and counts the install. A later call with better evidence
    /// replaces the decision and recredits earlier events. Concurrent calls record one install.
    async fn configure(&self, command: ConfigureCommand) -> StoreResult<ConfigureOutcome>;

    /// Stores the identity of a device's user, even for a device that was never configured.
    /// [`tributary_domain::device::claim`] decides which claims are used.
    async fn identify(
        &self,
        app: AppId,
        environment: Environment,
        device: DeviceKey,
        identity: IdentityClaim,
        at: Timestamp,
    ) -> StoreResult<()>;

    /// Returns a device in the caller's environment.
    async fn device(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        device: DeviceKey,
    ) -> StoreResult<DeviceDetails>;

    /// Erases a device in the caller's environment. Also erases the data of the device's users,
    /// except users who also use another device. The rows stay under the pseudonym without personal
    /// data, so that all figures stay the same. Pending deliveries are cancelled. Refused when the
    /// device does not exist or is already erased.
    ///
    /// This is one transaction regardless of the number of events, so that a device is never half
    /// erased.
    async fn erase_device(
        &self,
        caller: &Authorized<PeopleErase>,
        app: AppId,
        device: DeviceKey,
        pseudonym: DeviceKey,
        origin: AuditContext,
    ) -> StoreResult<()>;

    /// Erases a device at its user's request, like [`Self::erase_device`]. Refused if
    /// [`tributary_domain::erasure::check_erase_proof`] rejects the proof. The proof of an erased
    /// device stays valid; such a request is refused because the device does not exist.
    async fn erase_own_device(&self, request: EraseRequest) -> StoreResult<()>;

    /// Deletes the attribution data of devices that were last active before `before`. Examines at
    /// most `limit` devices. [`tributary_domain::retention`] decides what is deleted; device ids,
    /// credit and figures stay.
    async fn forget_attributions(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> StoreResult<AttributionSweep>;

    /// Leases at most `limit` due tokens until `until`.
    async fn lease_ad_services_tokens(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<LeasedToken>>;

    /// Settles a leased token: applies Apple's final response to the attribution and removes the
    /// token, or schedules a retry. Returns false when the lease was lost.
    async fn settle_ad_services_token(
        &self,
        lease: LeasedToken,
        outcome: TokenOutcome,
        at: Timestamp,
    ) -> StoreResult<bool>;
}
