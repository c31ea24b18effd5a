//! Devices, their identities and the attribution of their installs.

mod erase_tokens;
mod held;
mod state;
mod tokens;

#[cfg(test)]
mod tests;

pub(crate) use state::{
    claim_first_payment, find_first_payment, find_state, find_state_in, insert_device,
    note_first_payment, note_last_seen, settle_first_payment_in,
};

use crate::event_rows::find_events;
use crate::rows::{APP_COLUMNS, app_secrets, read_row, require_app};
use crate::tables::{SqliteTables, run};
use crate::{Failure, SqliteStore};
use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use tributary_domain::access::{AnalyticsRead, Authorized, Environment, PeopleErase};
use tributary_domain::app::{App, AppSecret};
use tributary_domain::audit::AuditContext;
use tributary_domain::device::{DeviceKey, DeviceRef, IdentityClaim};
use tributary_domain::install::ConfigureCommand;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::{
    SkanTable as _, configure, erase_device, erase_own_device, forget_attributions, identify,
    settle_token,
};
use tributary_store::records::{AppRow, Columns, SdkKeyRow};
use tributary_store::{
    AttributionSweep, ConfigureOutcome, DEVICE_EVENTS_MAX, DeviceDetails, Devices, EraseRequest,
    LeasedToken, SdkApp, StoreResult, TokenOutcome,
};

fn find_sdk_app(connection: &Connection, sdk_key: &str) -> Result<Option<SdkApp>, Failure> {
    let sql = format!(
        "select {} from sdk_keys where sdk_key = ?1",
        SdkKeyRow::COLUMNS
    );
    let found = connection
        .prepare_cached(&sql)?
        .query_row([sdk_key], read_row::<SdkKeyRow>)
        .optional()?;
    let Some(key) = found else {
        return Ok(None);
    };
    let sql = format!("select {APP_COLUMNS} from apps where app_id = ?1");
    let row = connection
        .prepare_cached(&sql)?
        .query_row([key.app_id], read_row::<AppRow>)?;
    let app = AppId::from_bytes(row.app_id);
    let app = row.read(app_secrets(connection, app)?)?;
    let sealed = |secret| sealed_secret(connection, &app, secret);
    let mut identity_secrets = Vec::new();
    for secret in [AppSecret::Identity, AppSecret::IdentityPrevious] {
        identity_secrets.extend(sealed(secret)?);
    }
    let key = key.read()?;
    Ok(Some(SdkApp {
        environment: key.environment,
        key,
        social_referrer_key: sealed(AppSecret::SocialReferrerKey)?,
        play_decryption_key: sealed(AppSecret::PlayDecryptionKey)?,
        play_verification_key: sealed(AppSecret::PlayVerificationKey)?,
        identity_secrets,
        skan: run(SqliteTables(connection).skan_configuration(&app))?,
        app,
    }))
}

/// Reads a secret of an app. The app was read with the names of its secrets, so most apps need no
/// query.
fn sealed_secret(
    connection: &Connection,
    app: &App,
    secret: AppSecret,
) -> Result<Option<SealedSecret>, Failure> {
    if !app.secrets.contains(&secret) {
        return Ok(None);
    }
    let sealed: Option<Vec<u8>> = connection
        .prepare_cached("select sealed from app_secrets where app_id = ?1 and name = ?2")?
        .query_row(params![app.id.as_bytes(), secret.as_str()], |row| {
            row.get(0)
        })
        .optional()?;
    Ok(sealed.map(SealedSecret::from_bytes))
}

fn find_story(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    device: &DeviceKey,
) -> Result<DeviceDetails, Failure> {
    let state = find_state(connection, app, environment, device)?;
    let limit = i64::try_from(DEVICE_EVENTS_MAX).unwrap_or(i64::MAX);
    let events = find_events(
        connection,
        &["app_id = ?", "environment = ?", "device_id = ?"],
        &[app.as_bytes(), &environment.as_str(), &device.as_str()],
        limit + 1,
    )?;
    Ok(DeviceDetails::new(state, events)?)
}

#[async_trait]
impl Devices for SqliteStore {
    async fn sdk_app(&self, sdk_key: &str) -> StoreResult<Option<SdkApp>> {
        let sdk_key = sdk_key.to_owned();
        self.read("sdk_app", move |connection| {
            find_sdk_app(connection, &sdk_key)
        })
        .await
    }

    async fn configure(&self, command: ConfigureCommand) -> StoreResult<ConfigureOutcome> {
        self.write_counted("configure", move |connection| {
            run(configure(&SqliteTables(connection), &command))
        })
        .await
    }

    async fn identify(
        &self,
        app: AppId,
        environment: Environment,
        device: DeviceKey,
        identity: IdentityClaim,
        at: Timestamp,
    ) -> StoreResult<()> {
        self.write_counted("identify", move |connection| {
            let device = DeviceRef {
                app,
                environment,
                key: &device,
            };
            let tables = SqliteTables(connection);
            Ok(((), run(identify(&tables, device, &identity, at))?))
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
        self.read("device", move |connection| {
            require_app(connection, organization, app)?;
            find_story(connection, app, environment, &device)
        })
        .await
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
        let begun = std::time::Instant::now();
        let name = "erase_device";
        let work = move |connection: &Connection| {
            let device = DeviceRef {
                app,
                environment,
                key: &device,
            };
            let tables = SqliteTables(connection);
            run(erase_device(
                &tables,
                organization,
                device,
                &pseudonym,
                &origin,
            ))
        };
        let outcome = self.writer.run_erasing(name, work).await;
        tributary_store::metrics::record_transaction(name, &outcome, begun.elapsed());
        outcome
    }

    async fn erase_own_device(&self, request: EraseRequest) -> StoreResult<()> {
        let begun = std::time::Instant::now();
        let name = "erase_own_device";
        let work = move |connection: &Connection| {
            run(erase_own_device(&SqliteTables(connection), &request))
        };
        let outcome = self.writer.run_erasing(name, work).await;
        tributary_store::metrics::record_transaction(name, &outcome, begun.elapsed());
        outcome
    }

    async fn forget_attributions(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> StoreResult<AttributionSweep> {
        self.write("forget_attributions", move |connection| {
            run(forget_attributions(
                &SqliteTables(connection),
                before,
                limit,
            ))
        })
        .await
    }

    async fn lease_ad_services_tokens(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<LeasedToken>> {
        // Read first, without writing: usually nothing is due, and a read needs no sync.
        let due = self
            .read("due_ad_services_tokens", move |connection| {
                tokens::has_due(connection, now)
            })
            .await?;
        if !due {
            return Ok(Vec::new());
        }
        self.write("lease_ad_services_tokens", move |connection| {
            tokens::lease(connection, now, until, limit)
        })
        .await
    }

    async fn settle_ad_services_token(
        &self,
        lease: LeasedToken,
        outcome: TokenOutcome,
        at: Timestamp,
    ) -> StoreResult<bool> {
        self.write_counted("settle_ad_services_token", move |connection| {
            run(settle_token(
                &SqliteTables(connection),
                &lease,
                &outcome,
                at,
            ))
        })
        .await
    }
}
