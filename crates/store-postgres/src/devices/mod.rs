//! Devices, their people, and the decisions about their installs.

mod erase;
mod first_payment;
mod forget;
mod known;
pub(crate) mod locked;
mod tokens;

pub(crate) use first_payment::settle_first_payment;
pub(crate) use known::{DeviceRef, lock_known};

use crate::billing::{self, Moment, Shown};
use crate::event_rows::{Anew, EventKey};
use crate::outbox::ends::Ends;
use crate::rows::{Purpose, app_by_id, insert_audit, require_app};
use crate::tx::Tx;
use crate::{Failure, PostgresStore, candidates, clicks, event_rows, planned, rollups};
use async_trait::async_trait;
use known::{find_known, insert_device, lock_person, update_device, update_identity};
use tributary_domain::access::{AnalyticsRead, Authorized, Environment, PeopleErase};
use tributary_domain::app::{AppSecret, FraudPolicy};
use tributary_domain::audit::{Action, Origin};
use tributary_domain::device::{AdvertisingId, DeviceKey, Identity, UserKey};
use tributary_domain::event::{Credit, Event, EventSource};
use tributary_domain::forwarding::plan::DeviceFacts;
use tributary_domain::install::{Configure, Known, Opening, configure, looks_for};
use tributary_domain::keyring::seal::Sealed;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::{PlannedRow, audit_row};
use tributary_store::{
    AttributionSweep, Configured, DeviceStory, Devices, LeasedToken, STORY_EVENTS_MAX, SdkApp,
    StoreError, StoreResult, TokenOutcome,
};
use uuid::Uuid;

async fn open_app(tx: &Tx, command: &Configure) -> Result<Configured, Failure> {
    let device = DeviceRef {
        app: command.app,
        environment: command.environment,
        key: &command.device,
    };
    let mut increments = Increments::default();
    // Before the device, as everybody does who settles subscriptions.
    let shown = Shown {
        device,
        user: command.identity.user.as_ref(),
        advertising: command.advertising_id.as_ref(),
        is_changed: true,
    };
    let entered = billing::enter(tx, &shown).await?;
    let known = lock_known(tx, device, command.at).await?;
    if let Some(click) = &command.opened {
        clicks::record(tx, std::slice::from_ref(click), &mut increments).await?;
    }
    let found = candidates::find(tx, command, &looks_for(command, &known)).await?;
    let opening = configure(command, &known, found);
    store(tx, command, device, &known, &opening).await?;
    let (user, advertising) = newly_shown(&known, &opening);
    let is_changed = opening.describes_anew(&known);
    let now_known = Known {
        device: Some(opening.device),
        identity: opening.identity,
        attribution: Some(opening.attribution.clone()),
        ..known
    };
    if opening.decided || opening.install.is_some() {
        let decided = Decided {
            known: &now_known,
            credit: opening.attribution.credit(),
            recredits: opening.decided,
            install: opening.install,
        };
        credit_and_plan(tx, command, device, decided, &mut increments).await?;
    }
    let shown = Shown {
        device,
        user: user.as_ref(),
        advertising: advertising.as_ref(),
        is_changed,
    };
    let moment = Moment {
        now: command.at,
        holds_suspicious: command.rules.fraud == FraudPolicy::Hold,
    };
    increments.merge(billing::show(tx, entered, &shown, Some(moment), command.at).await?);
    rollups::keep(tx, &increments).await?;
    Ok(Configured {
        first_open: opening.first_open,
        attribution: opening.attribution,
    })
}

/// What a device goes by now and did not before.
fn newly_shown(known: &Known, opening: &Opening) -> (Option<UserKey>, Option<AdvertisingId>) {
    let user = opening.identity.user.clone();
    let user = user.filter(|user| known.identity.user.as_ref() != Some(user));
    let before = known.device.as_ref();
    let before = before.and_then(|device| device.advertising_id.as_ref());
    let advertising = opening.device.advertising_id.clone();
    (user, advertising.filter(|id| before != Some(id)))
}

/// What a call decided about the events of its device.
struct Decided<'a> {
    known: &'a Known,
    credit: Credit,
    recredits: bool,
    install: Option<Event>,
}

/// Credits the events so far, records the install, and plans who hears of them.
async fn credit_and_plan(
    tx: &Tx,
    command: &Configure,
    device: DeviceRef<'_>,
    decided: Decided<'_>,
    increments: &mut Increments,
) -> Result<(), Failure> {
    let surroundings = planned::surroundings(tx, command.app, &decided.credit).await?;
    let facts = DeviceFacts {
        known: decided.known,
        click: surroundings.click.as_ref(),
        holds_suspicious: command.rules.fraud == FraudPolicy::Hold,
        policy: command.policy,
        now: command.at,
    };
    let integrations = &surroundings.integrations;
    let mut ends = Ends::default();
    if decided.recredits {
        let anew = Anew {
            credit: &decided.credit,
            facts: &facts,
            integrations,
        };
        event_rows::recredit(tx, device, &anew, &mut ends, increments).await?;
    }
    if let Some(mut install) = decided.install {
        let plan = facts.plan(&mut install, integrations);
        let key = EventKey {
            app: command.app,
            environment: command.environment,
            source: EventSource::Sdk,
            given_id: &install.given_id,
            event: install.id,
            fingerprint: None,
        };
        if event_rows::claim(tx, &[key]).await? == [true] {
            event_rows::insert(tx, std::slice::from_ref(&install)).await?;
            let row = |one| PlannedRow::write(&install, one, command.at);
            let rows: Vec<PlannedRow> = plan.planned.iter().map(row).collect();
            planned::insert(tx, &rows).await?;
            increments.add_event(&install);
        }
    }
    ends.count(tx, command.at).await?;
    Ok(())
}

/// Writes the device, its person, its click and its token.
async fn store(
    tx: &Tx,
    command: &Configure,
    device: DeviceRef<'_>,
    known: &Known,
    opening: &Opening,
) -> Result<(), Failure> {
    if opening.first_open {
        insert_device(tx, command, opening).await?;
    } else {
        update_device(tx, device, &opening.device, &opening.attribution).await?;
    }
    if opening.identity != known.identity {
        update_identity(tx, device, &opening.identity, command.at).await?;
    }
    if let Some(click) = opening.release {
        candidates::release(tx, device, click).await?;
    }
    match (opening.take, opening.attribution.decision.click) {
        (Some(click), _) => candidates::take(tx, device, click).await?,
        (None, Some(click)) if opening.decided => candidates::keep(tx, device, click).await?,
        _ => {}
    }
    if opening.redeem {
        tokens::enqueue(tx, command).await?;
    }
    Ok(())
}

async fn find_sdk_app(tx: &Tx, sdk_key: &str) -> Result<Option<SdkApp>, Failure> {
    let sql = "select app_id, environment from sdk_keys where sdk_key = $1";
    let Some(key) = tx.query_opt(sql, &[&sdk_key]).await? else {
        return Ok(None);
    };
    let app_id: Uuid = key.try_get(0)?;
    let id = AppId::from_bytes(app_id.into_bytes());
    let corrupt = |column| StoreError::corrupt("sdk_keys", column, id);
    let app = app_by_id(tx, app_id)
        .await?
        .ok_or_else(|| corrupt("app_id"))?;
    let wanted = AppSecret::SocialReferrerKey;
    let mut social_referrer_key = None;
    // The app says what it has, so that most apps cost no look.
    if app.secrets.contains(&wanted) {
        let sql = "select sealed from app_secrets where app_id = $1 and name = $2";
        let row = tx.query_opt(sql, &[&app_id, &wanted.as_str()]).await?;
        let sealed: Option<Vec<u8>> = row.map(|row| row.try_get(0)).transpose()?;
        social_referrer_key = sealed.map(Sealed::from_bytes);
    }
    Ok(Some(SdkApp {
        app,
        environment: Environment::parse(key.try_get(1)?).ok_or_else(|| corrupt("environment"))?,
        social_referrer_key,
    }))
}

async fn find_story(tx: &Tx, device: DeviceRef<'_>) -> Result<DeviceStory, Failure> {
    let known = find_known(tx, device).await?;
    let limit = i64::try_from(STORY_EVENTS_MAX).unwrap_or(i64::MAX);
    let mut events = event_rows::latest(tx, device, limit + 1).await?;
    let unknown = known.device.is_none() && known.identity == Identity::default();
    if unknown && events.is_empty() {
        return Err(Refusal::DeviceNotFound.into());
    }
    let has_more_events = events.len() > STORY_EVENTS_MAX;
    events.truncate(STORY_EVENTS_MAX);
    Ok(DeviceStory {
        known,
        events,
        has_more_events,
    })
}

#[async_trait]
impl Devices for PostgresStore {
    async fn sdk_app(&self, sdk_key: &str) -> StoreResult<Option<SdkApp>> {
        let sdk_key = sdk_key.to_owned();
        self.read("sdk_app", async move |tx| find_sdk_app(tx, &sdk_key).await)
            .await
    }

    async fn configure(&self, command: Configure) -> StoreResult<Configured> {
        self.write("configure", async move |tx| {
            // On the heap: a call may do a great deal, and whoever waits for it should not carry all that along.
            Box::pin(open_app(tx, &command)).await
        })
        .await
    }

    async fn identify(
        &self,
        app: AppId,
        environment: Environment,
        device: DeviceKey,
        identity: Identity,
        at: Timestamp,
    ) -> StoreResult<()> {
        self.write("identify", async move |tx| {
            let device = DeviceRef {
                app,
                environment,
                key: &device,
            };
            let shown = Shown {
                device,
                user: identity.user.as_ref(),
                advertising: None,
                is_changed: false,
            };
            let entered = billing::enter(tx, &shown).await?;
            let known = lock_person(tx, device, at).await?.identity;
            let updated = known.clone().updated(identity.clone());
            if updated == known {
                return Ok(());
            }
            update_identity(tx, device, &updated, at).await?;
            let user = updated
                .user
                .filter(|user| known.user.as_ref() != Some(user));
            let shown = Shown {
                device,
                user: user.as_ref(),
                advertising: None,
                is_changed: false,
            };
            let increments = billing::show(tx, entered, &shown, None, at).await?;
            rollups::keep(tx, &increments).await
        })
        .await
    }

    async fn device(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        device: DeviceKey,
    ) -> StoreResult<DeviceStory> {
        let (organization, environment) = (caller.organization(), caller.environment());
        self.read("device", async move |tx| {
            require_app(tx, organization, app, Purpose::Reading).await?;
            let device = DeviceRef {
                app,
                environment,
                key: &device,
            };
            find_story(tx, device).await
        })
        .await
    }

    async fn erase_device(
        &self,
        caller: &Authorized<PeopleErase>,
        app: AppId,
        device: DeviceKey,
        pseudonym: DeviceKey,
        origin: Origin,
    ) -> StoreResult<()> {
        let (organization, environment) = (caller.organization(), caller.environment());
        self.write("erase_device", async move |tx| {
            // The same lock as that of whoever settles subscriptions or links devices.
            require_app(tx, organization, app, Purpose::Changing).await?;
            let device = DeviceRef {
                app,
                environment,
                key: &device,
            };
            // Boxed: so many statements under way at a time are large.
            Box::pin(erase::erase(tx, device, &pseudonym, origin.at)).await?;
            let (action, target) = (Action::DeviceErased, pseudonym.as_str());
            let row = audit_row(organization, &origin, action, Some(app), target, &[]);
            insert_audit(tx, &row).await
        })
        .await
    }

    async fn forget_attributions(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> StoreResult<AttributionSweep> {
        self.write("forget_attributions", async move |tx| {
            forget::forget(tx, before, limit).await
        })
        .await
    }

    async fn lease_ad_services_tokens(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<LeasedToken>> {
        self.write("lease_ad_services_tokens", async move |tx| {
            tokens::lease(tx, now, until, limit).await
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
            tokens::settle(tx, &lease, &outcome, at).await
        })
        .await
    }
}
