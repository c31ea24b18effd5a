//! Devices, their people, and the decisions about their installs.

mod erase;
mod forget;
mod known;
mod tokens;

#[cfg(test)]
mod tests;

pub(crate) use known::{
    claim_first_payment, find_known, find_known_in, first_payment, note_first_payment, note_seen,
    settle_first_payment, settle_payer,
};

use crate::billing::{self, Moment, Shown};
use crate::clicks::insert_click;
use crate::events::{find_events, insert_event};
use crate::rows::{APP_COLUMNS, app_row, app_secrets, insert_audit, require_app};
use crate::{Failure, SqliteStore, candidates, planned, rollups};
use async_trait::async_trait;
use erase::Erased;
use known::{Recredited, insert_device, recredit, update_device, update_identity};
use rusqlite::{Connection, OptionalExtension, params};
use tributary_domain::access::{AnalyticsRead, Authorized, Environment, PeopleErase};
use tributary_domain::app::{AppSecret, FraudPolicy};
use tributary_domain::audit::{Action, Origin};
use tributary_domain::device::{AdvertisingId, DeviceKey, Identity, UserKey};
use tributary_domain::event::{Credit, Event};
use tributary_domain::forwarding::plan::DeviceFacts;
use tributary_domain::install::{Configure, Known, Opening, configure, looks_for};
use tributary_domain::keyring::seal::Sealed;
use tributary_domain::refusal::Refusal;
use tributary_domain::report::Increments;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::records::audit_row;
use tributary_store::{
    AttributionSweep, Configured, DeviceStory, Devices, LeasedToken, STORY_EVENTS_MAX, SdkApp,
    StoreError, StoreResult, TokenOutcome,
};

fn open_app(
    connection: &Connection,
    command: &Configure,
) -> Result<(Configured, Increments), Failure> {
    let (app, environment) = (command.app, command.environment);
    let mut increments = Increments::default();
    if let Some(click) = &command.opened
        && insert_click(connection, click)?
    {
        increments.add_click(click);
    }
    let known = find_known(connection, app, environment, &command.device)?;
    let found = candidates::find(connection, command, &looks_for(command, &known))?;
    let opening = configure(command, &known, found);

    if opening.first_open {
        insert_device(connection, command, &opening)?;
    } else {
        update_device(
            connection,
            app,
            environment,
            &opening.device,
            &opening.attribution,
        )?;
    }
    if opening.identity != known.identity {
        let identity = &opening.identity;
        update_identity(
            connection,
            app,
            environment,
            &command.device,
            identity,
            command.at,
        )?;
    }
    if let Some(click) = opening.release {
        candidates::release(
            connection,
            app.as_bytes(),
            click.as_bytes(),
            command.device.as_str(),
        )?;
    }
    match (opening.take, opening.attribution.decision.click) {
        (Some(click), _) => candidates::take(connection, command, click.as_bytes())?,
        (None, Some(click)) if opening.decided => {
            candidates::keep(connection, command, click.as_bytes())?;
        }
        _ => {}
    }
    if opening.redeem {
        tokens::enqueue(connection, command)?;
    }
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
        credit_and_plan(connection, command, decided, &mut increments)?;
    }
    increments.merge(show_to_billing(
        connection,
        command,
        (user.as_ref(), advertising.as_ref(), is_changed),
    )?);
    let configured = Configured {
        first_open: opening.first_open,
        attribution: opening.attribution,
    };
    Ok((configured, increments))
}

/// Joins the subscriptions that wait for what a device goes by now.
fn show_to_billing(
    connection: &Connection,
    command: &Configure,
    (user, advertising, is_changed): (Option<&UserKey>, Option<&AdvertisingId>, bool),
) -> Result<Increments, Failure> {
    let shown = Shown {
        app: command.app,
        environment: command.environment,
        device: &command.device,
        user,
        advertising,
        is_changed,
    };
    let moment = Moment {
        now: command.at,
        holds_suspicious: command.rules.fraud == FraudPolicy::Hold,
    };
    billing::show(connection, &shown, |_| Ok(moment), command.at)
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
fn credit_and_plan(
    connection: &Connection,
    command: &Configure,
    decided: Decided<'_>,
    increments: &mut Increments,
) -> Result<(), Failure> {
    let surroundings = planned::surroundings(connection, command.app, Some(&decided.credit))?;
    let facts = DeviceFacts {
        known: decided.known,
        click: surroundings.click.as_ref(),
        holds_suspicious: command.rules.fraud == FraudPolicy::Hold,
        policy: command.policy,
        now: command.at,
    };
    let integrations = &surroundings.integrations;
    if decided.recredits {
        let of = Recredited {
            app: command.app,
            environment: command.environment,
            device: &command.device,
            credit: &decided.credit,
        };
        recredit(connection, &of, &facts, integrations, increments)?;
    }
    if let Some(mut install) = decided.install {
        let plan = facts.plan(&mut install, integrations);
        insert_event(connection, &install)?;
        planned::insert(connection, &install, &plan.planned, command.at)?;
        increments.add_event(&install);
    }
    Ok(())
}

fn find_sdk_app(connection: &Connection, sdk_key: &str) -> Result<Option<SdkApp>, Failure> {
    let found: Option<(Vec<u8>, String)> = connection
        .prepare_cached("select app_id, environment from sdk_keys where sdk_key = ?1")?
        .query_row([sdk_key], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((app_id, environment)) = found else {
        return Ok(None);
    };
    let sql = format!("select {APP_COLUMNS} from apps where app_id = ?1");
    let row = connection
        .prepare_cached(&sql)?
        .query_row([app_id], app_row)?;
    let app = AppId::from_bytes(row.app_id);
    let sealed: Option<Vec<u8>> = connection
        .prepare_cached("select sealed from app_secrets where app_id = ?1 and name = ?2")?
        .query_row(
            params![app.as_bytes(), AppSecret::SocialReferrerKey.as_str()],
            |row| row.get(0),
        )
        .optional()?;
    Ok(Some(SdkApp {
        app: row.read(app_secrets(connection, app)?)?,
        environment: Environment::parse(&environment)
            .ok_or_else(|| StoreError::corrupt("sdk_keys", "environment", app))?,
        social_referrer_key: sealed.map(Sealed::from_bytes),
    }))
}

fn find_story(
    connection: &Connection,
    app: AppId,
    environment: Environment,
    device: &DeviceKey,
) -> Result<DeviceStory, Failure> {
    let known = find_known(connection, app, environment, device)?;
    let limit = i64::try_from(STORY_EVENTS_MAX).unwrap_or(i64::MAX);
    let mut events = find_events(
        connection,
        &["app_id = ?", "environment = ?", "device_id = ?"],
        &[app.as_bytes(), &environment.as_str(), &device.as_str()],
        limit + 1,
    )?;
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
impl Devices for SqliteStore {
    async fn sdk_app(&self, sdk_key: &str) -> StoreResult<Option<SdkApp>> {
        let sdk_key = sdk_key.to_owned();
        self.read("sdk_app", move |connection| {
            find_sdk_app(connection, &sdk_key)
        })
        .await
    }

    async fn configure(&self, command: Configure) -> StoreResult<Configured> {
        self.write_counted("configure", move |connection| {
            open_app(connection, &command)
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
        self.write_counted("identify", move |connection| {
            let known = find_known(connection, app, environment, &device)?;
            let updated = known.identity.clone().updated(identity);
            if updated == known.identity {
                return Ok(((), Increments::default()));
            }
            update_identity(connection, app, environment, &device, &updated, at)?;
            let user = updated
                .user
                .filter(|user| known.identity.user.as_ref() != Some(user));
            let shown = Shown {
                app,
                environment,
                device: &device,
                user: user.as_ref(),
                advertising: None,
                is_changed: false,
            };
            let moment = |connection: &Connection| billing::moment_of(connection, app, at);
            Ok(((), billing::show(connection, &shown, moment, at)?))
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
        origin: Origin,
    ) -> StoreResult<()> {
        let (organization, environment) = (caller.organization(), caller.environment());
        let begun = std::time::Instant::now();
        let name = "erase_device";
        let work = move |connection: &Connection| {
            require_app(connection, organization, app)?;
            // What was counted of the device would bring it back into its cohort.
            rollups::merge_all(connection)?.discard(connection, app)?;
            let target = pseudonym.as_str().to_owned();
            let erased = Erased {
                app,
                environment,
                device,
                pseudonym,
                at: origin.at,
            };
            erase::erase(connection, &erased)?;
            let action = Action::DeviceErased;
            let row = audit_row(organization, &origin, action, Some(app), &target, &[]);
            insert_audit(connection, &row)
        };
        let outcome = self.writer.run_erasing(name, work).await;
        tributary_store::metrics::transaction(name, &outcome, begun.elapsed());
        outcome
    }

    async fn forget_attributions(
        &self,
        before: Timestamp,
        limit: u32,
    ) -> StoreResult<AttributionSweep> {
        self.write("forget_attributions", move |connection| {
            forget::forget(connection, before, limit)
        })
        .await
    }

    async fn lease_ad_services_tokens(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<LeasedToken>> {
        // Nothing is due nearly always, and a look costs no sync.
        let due = self
            .read("due_ad_services_tokens", move |connection| {
                tokens::any_due(connection, now)
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
            tokens::settle(connection, &lease, outcome, at)
        })
        .await
    }
}
