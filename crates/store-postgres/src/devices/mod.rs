//! Devices, their identities and the attribution of their installs.

pub(crate) mod bulk;
pub(crate) mod erase_tokens;
mod held;
mod imported;
mod state;
pub(crate) mod tokens;
mod try_lock;

pub(crate) use imported::{find_import_facts, mark_installed};
pub(crate) use state::DeviceColumns;
pub(crate) use try_lock::try_lock_and_read;

use crate::rows::{AppLockMode, app_by_id, read_row, require_app};
use crate::tx::Tx;
use crate::{Failure, PostgresStore, configure, event_rows, rollups};
use async_trait::async_trait;
pub(crate) use state::find_state;
use tributary_domain::access::{AnalyticsRead, Authorized, Environment, PeopleErase};
use tributary_domain::app::{App, AppSecret};
use tributary_domain::audit::AuditContext;
use tributary_domain::device::{DeviceKey, DeviceRef, IdentityClaim};
use tributary_domain::install::ConfigureCommand;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{
    BatchedCall, SkanTable as _, erase_device, erase_own_device, forget_attributions, identify,
    settle_token,
};
use tributary_store::records::{Columns, SdkKeyRow};
use tributary_store::{
    AttributionSweep, ConfigureOutcome, DEVICE_EVENTS_MAX, DeviceDetails, Devices, EraseRequest,
    LeasedToken, SdkApp, StoreError, StoreResult, TokenOutcome,
};
use uuid::Uuid;

async fn find_sdk_app(tx: &Tx, sdk_key: &str) -> Result<Option<SdkApp>, Failure> {
    let sql = format!(
        "select {} from sdk_keys where sdk_key = $1",
        SdkKeyRow::COLUMNS
    );
    let Some(row) = tx.query_opt(&sql, &[&sdk_key]).await? else {
        return Ok(None);
    };
    let key = read_row::<SdkKeyRow>(&row)?;
    let id = AppId::from_bytes(key.app_id);
    let app = app_by_id(tx, Uuid::from_bytes(key.app_id))
        .await?
        .ok_or_else(|| StoreError::corrupt("sdk_keys", "app_id", id))?;
    let key = key.read()?;
    let mut identity_secrets = Vec::new();
    for secret in [AppSecret::Identity, AppSecret::IdentityPrevious] {
        identity_secrets.extend(sealed_secret(tx, &app, secret).await?);
    }
    Ok(Some(SdkApp {
        environment: key.environment,
        key,
        social_referrer_key: sealed_secret(tx, &app, AppSecret::SocialReferrerKey).await?,
        play_decryption_key: sealed_secret(tx, &app, AppSecret::PlayDecryptionKey).await?,
        play_verification_key: sealed_secret(tx, &app, AppSecret::PlayVerificationKey).await?,
        identity_secrets,
        skan: tx.skan_configuration(&app).await?,
        app,
    }))
}

/// Reads a secret of an app. The app was read with the names of its secrets, so most apps need no
/// query.
async fn sealed_secret(
    tx: &Tx,
    app: &App,
    secret: AppSecret,
) -> Result<Option<SealedSecret>, Failure> {
    if !app.secrets.contains(&secret) {
        return Ok(None);
    }
    let app = Uuid::from_bytes(*app.id.as_bytes());
    let sql = "select sealed from app_secrets where app_id = $1 and name = $2";
    let row = tx.query_opt(sql, &[&app, &secret.as_str()]).await?;
    let sealed: Option<Vec<u8>> = row.map(|row| row.try_get(0)).transpose()?;
    Ok(sealed.map(SealedSecret::from_bytes))
}

async fn find_story(tx: &Tx, device: DeviceRef<'_>) -> Result<DeviceDetails, Failure> {
    let state = find_state(tx, device).await?;
    let limit = i64::try_from(DEVICE_EVENTS_MAX).unwrap_or(i64::MAX);
    let events = event_rows::latest(tx, device, limit + 1).await?;
    Ok(DeviceDetails::new(state, events)?)
}

#[async_trait]
impl Devices for PostgresStore {
    async fn sdk_app(&self, sdk_key: &str) -> StoreResult<Option<SdkApp>> {
        let sdk_key = sdk_key.to_owned();
        self.read("sdk_app", async move |tx| find_sdk_app(tx, &sdk_key).await)
            .await
    }

    async fn configure(&self, command: ConfigureCommand) -> StoreResult<ConfigureOutcome> {
        let batched = self.write_batched(&self.configure, command.clone()).await?;
        match batched {
            BatchedCall::Recorded(outcome) => Ok(*outcome),
            BatchedCall::Alone => configure::record_alone(&self.pool, command).await,
        }
    }

    async fn identify(
        &self,
        app: AppId,
        environment: Environment,
        device: DeviceKey,
        identity: IdentityClaim,
        at: Timestamp,
    ) -> StoreResult<()> {
        self.write("identify", async move |tx| {
            let device = DeviceRef {
                app,
                environment,
                key: &device,
            };
            let increments = Box::pin(identify(tx, device, &identity, at)).await?;
            rollups::store_increments(tx, &increments).await
        })
        .await
    }

    async fn device(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        device: DeviceKey,
    ) -> StoreResult<DeviceDetails> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        let story = self.read_for(caller, "device", async move |tx| {
            require_app(tx, organization, app, AppLockMode::Reading).await?;
            let device = DeviceRef {
                app,
                environment,
                key: &device,
            };
            find_story(tx, device).await
        });
        // Boxed because the future is large.
        Box::pin(story).await
    }

    async fn erase_device(
        &self,
        caller: &Authorized<PeopleErase>,
        app: AppId,
        device: DeviceKey,
        pseudonym: DeviceKey,
        origin: AuditContext,
    ) -> StoreResult<()> {
        let (organization, environment) = (caller.organization_of(app)?, caller.environment());
        self.write("erase_device", async move |tx| {
            let device = DeviceRef {
                app,
                environment,
                key: &device,
            };
            // Boxed because the futures of many concurrent statements are large.
            Box::pin(erase_device(tx, organization, device, &pseudonym, &origin)).await
        })
        .await
    }

    async fn erase_own_device(&self, request: EraseRequest) -> StoreResult<()> {
        self.write("erase_own_device", async move |tx| {
            // Boxed because the futures of many concurrent statements are large.
            Box::pin(erase_own_device(tx, &request)).await
        })
        .await
    }

    async fn forget_attributions(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> StoreResult<AttributionSweep> {
        self.write("forget_attributions", async move |tx| {
            forget_attributions(tx, before, limit).await
        })
        .await
    }

    async fn lease_ad_services_tokens(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<LeasedToken>> {
        if self.pool.is_distributed() {
            return tokens::lease_hinted(&self.pool, now, until, limit).await;
        }
        self.write("lease_ad_services_tokens", async move |tx| {
            tokens::lease_all(tx, now, until, limit).await
        })
        .await
    }

    async fn settle_ad_services_token(
        &self,
        lease: LeasedToken,
        outcome: TokenOutcome,
        at: Timestamp,
    ) -> StoreResult<bool> {
        self.write("settle_ad_services_token", async move |tx| {
            let (is_held, increments) = Box::pin(settle_token(tx, &lease, &outcome, at)).await?;
            rollups::store_increments(tx, &increments).await?;
            Ok(is_held)
        })
        .await
    }
}
