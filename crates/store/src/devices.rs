//! Devices, their people, and the decisions about their installs.

use crate::StoreResult;
use async_trait::async_trait;
use std::time::Duration;
use tributary_domain::access::{AnalyticsRead, Authorized, Environment, PeopleErase};
use tributary_domain::app::App;
use tributary_domain::attribution::ad_services::AdServices;
use tributary_domain::audit::AuditContext;
use tributary_domain::device::{DeviceKey, Identity};
use tributary_domain::event::Event;
use tributary_domain::install::{Attribution, ConfigureCommand, DeviceState};
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// Other installs from an address that are counted: those of this long before an install.
pub const INSTALL_BURST_WINDOW: Duration = Duration::from_hours(1);
/// Clicks of people from one address that are looked at for likeness, the newest ones. Those on the device's
/// platform that nobody has come first among the candidates, so that the others hide none of them.
pub const ADDRESS_CLICKS_SCANNED_MAX: usize = 1_000;
/// Events that are shown with a device's story.
pub const DEVICE_EVENTS_MAX: usize = 50;

/// The app that an SDK key names.
#[derive(Debug, Clone)]
pub struct SdkApp {
    /// The app.
    pub app: App,
    /// Live or test.
    pub environment: Environment,
    /// Decrypts the social network's referrer, where it is set.
    pub social_referrer_key: Option<SealedSecret>,
}

/// What a call of `configure` came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigureOutcome {
    /// Whether this was the first call of the device.
    pub is_first_open: bool,
    /// The decision that stands.
    pub attribution: Attribution,
}

/// A device with everything that is known about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceDetails {
    /// The device, its person and the decision.
    pub state: DeviceState,
    /// Its latest events, newest first.
    pub events: Vec<Event>,
    /// Whether there are older ones.
    pub has_more_events: bool,
}

impl DeviceDetails {
    /// Builds the story from one event more than it shows; refused when nothing is known of the device.
    pub fn new(known: DeviceState, mut events: Vec<Event>) -> Result<Self, Refusal> {
        if known.is_empty() && events.is_empty() {
            return Err(Refusal::DeviceNotFound);
        }
        let has_more_events = events.len() > DEVICE_EVENTS_MAX;
        events.truncate(DEVICE_EVENTS_MAX);
        Ok(Self {
            state: known,
            events,
            has_more_events,
        })
    }
}

/// A token to be redeemed at Apple's, leased to one worker.
#[derive(Clone, PartialEq, Eq)]
pub struct LeasedToken {
    /// Of which app.
    pub app: AppId,
    /// Live or test.
    pub environment: Environment,
    /// Of which device.
    pub device: DeviceKey,
    /// The token. It never reaches a log.
    pub token: String,
    /// When the device sent it.
    pub received_at: Timestamp,
    /// How often it was tried before.
    pub attempts: u32,
    /// Until when it is this worker's; settling names it, so that a lease that was lost settles nothing.
    pub leased_until: Timestamp,
}

/// What becomes of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenOutcome {
    /// Apple's last word.
    Final(AdServices),
    /// To be tried again.
    RetryAt(Timestamp),
}

/// What one batch of [`Devices::forget_attributions`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttributionSweep {
    /// Devices whose last known activity was old enough to be looked at.
    pub examined: u64,
    /// Those that were not active since, and lost their attribution data.
    pub forgotten: u64,
}

/// Devices.
#[async_trait]
pub trait Devices: Send + Sync {
    /// The app that a public SDK key names.
    async fn sdk_app(&self, sdk_key: &str) -> StoreResult<Option<SdkApp>>;

    /// Takes a call of `configure`: registers the device, decides at its first call, takes the click, records
    /// the install, and counts it. A later call that brings better evidence replaces the decision, and the
    /// events so far are credited anew. Two calls at the same moment make one install.
    async fn configure(&self, command: ConfigureCommand) -> StoreResult<ConfigureOutcome>;

    /// Remembers who is behind a device, also one that was never configured.
    async fn identify(
        &self,
        app: AppId,
        environment: Environment,
        device: DeviceKey,
        identity: Identity,
        at: Timestamp,
    ) -> StoreResult<()>;

    /// A device's story, in the caller's environment.
    async fn device(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        device: DeviceKey,
    ) -> StoreResult<DeviceDetails>;

    /// Erases a device of the caller's environment, and what its people's ids lead to that no other device goes by. Its
    /// rows stay, under the pseudonym and without anything that says whose they were, so that every figure stays what it
    /// is; what waits to be sent is cancelled. Refused when there is no such device, and so when it is erased already.
    ///
    /// One transaction, however many events there are: half of a person is no state to be in.
    async fn erase_device(
        &self,
        caller: &Authorized<PeopleErase>,
        app: AppId,
        device: DeviceKey,
        pseudonym: DeviceKey,
        origin: AuditContext,
    ) -> StoreResult<()>;

    /// Forgets the attribution data of devices that were last active before a moment, examining at most `limit`
    /// of them. [`tributary_domain::retention`] says what goes; ids of devices, credit and figures stay.
    async fn forget_attributions(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> StoreResult<AttributionSweep>;

    /// Tokens that are due, at most `limit`, leased until `until`.
    async fn lease_ad_services_tokens(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<LeasedToken>>;

    /// Settles a leased token: forgets it with Apple's last word, which may make the decision better, or
    /// puts it back. False when the lease was lost meanwhile.
    async fn settle_ad_services_token(
        &self,
        lease: LeasedToken,
        outcome: TokenOutcome,
        at: Timestamp,
    ) -> StoreResult<bool>;
}
