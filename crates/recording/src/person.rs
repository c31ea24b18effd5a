//! A person's data: which ids belong together, for erasing and exporting, and the parts of an export.

use crate::tables::{PersonTable, ReplayTable, Tables};
use std::collections::{BTreeMap, BTreeSet};
use tributary_domain::access::Environment;
use tributary_domain::audit::{Action, AuditContext, Changes};
use tributary_domain::billing::{Chain, Notification};
use tributary_domain::click::StoredClick;
use tributary_domain::device::{DeviceKey, DeviceRef, Identity, UserKey};
use tributary_domain::erasure::is_pseudonym;
use tributary_domain::install::DeviceState;
use tributary_domain::personal_data::{
    DataSubject, EventReferences, LinkedDevices, PersonIds, clicks_of_device, users_of_device,
};
use tributary_domain::refusal::Refusal;
use tributary_domain::report::cohort::CohortMember;
use tributary_domain::vocabulary::id::{AppId, ClickId, OrganizationId};
use tributary_store::personal_data::{
    EventOwner, PERSON_REFERENCES_MAX, PersonDevice, PersonEvents, PersonEventsQuery,
    PersonNotification, PersonRecords, PersonSubscription,
};
use tributary_store::records::{audit_row, json_string};

type Scope = (AppId, Environment);

/// Removes the users that a device other than these has a used link to.
pub(crate) async fn remove_shared<T: Tables>(
    tables: &T,
    scope: Scope,
    devices: &BTreeSet<DeviceKey>,
    users: &mut BTreeSet<UserKey>,
) -> Result<(), T::Failure> {
    let shared = tables.shared_people(scope, devices, users).await?;
    users.retain(|user| !shared.contains(user));
    Ok(())
}

/// Finds the subscriptions that may contain notifications about a person.
pub(crate) async fn find_chains_of_person<T: Tables>(
    tables: &T,
    scope: Scope,
    ids: &PersonIds,
    payments: &BTreeSet<String>,
) -> Result<BTreeSet<Chain>, T::Failure> {
    let payments: BTreeSet<&str> = payments.iter().map(String::as_str).collect();
    let mut chains = tables.chains_by_external_id(scope, &payments).await?;
    let keyed = tables
        .chains_by_key(scope, &ids.subscription_keys(), usize::MAX)
        .await?;
    chains.extend(keyed.into_iter().map(|(_, chain)| chain));
    let texts: Vec<String> = ids.texts().into_iter().map(json_string).collect();
    chains.extend(tables.single_notification_chains(scope, &texts).await?);
    Ok(chains)
}

/// A device with the references from its events.
struct FoundDevice {
    key: DeviceKey,
    state: DeviceState,
    references: EventReferences,
}

/// Reads everything about a person except subscriptions and events.
pub async fn person_records<T: Tables + PersonTable + ReplayTable>(
    tables: &T,
    scope: Scope,
    subject: &DataSubject,
) -> Result<PersonRecords, T::Failure> {
    let mut records = PersonRecords::default();
    let keys = match subject {
        DataSubject::Device(key) if is_pseudonym(key) => {
            return Err(Refusal::DeviceNotFound.into());
        }
        DataSubject::Device(key) => BTreeSet::from([key.clone()]),
        DataSubject::User(user) => {
            let linked = LinkedDevices::of(tables.links_of_user(scope, user).await?);
            records.left_out = linked.left_out;
            linked.own
        }
    };
    let mut devices = Vec::with_capacity(keys.len());
    for key in keys {
        devices.push(find_device(tables, scope, key).await?);
    }
    collect_ids(tables, scope, subject, &devices, &mut records).await?;
    let users: Vec<UserKey> = records.ids.users.iter().cloned().collect();
    let of_users = tables
        .references_of_users(scope, &users, PERSON_REFERENCES_MAX)
        .await?;
    if !exists(tables, scope, subject, (&devices, &records)).await? {
        return Err(match subject {
            DataSubject::Device(_) => Refusal::DeviceNotFound.into(),
            DataSubject::User(_) => Refusal::AppUserNotFound.into(),
        });
    }
    let is_full = |found: &EventReferences| {
        found.clicks.len() >= PERSON_REFERENCES_MAX || found.payments.len() >= PERSON_REFERENCES_MAX
    };
    let mut clicks = of_users.clicks.clone();
    records.is_cut = is_full(&of_users);
    records.payments = of_users.payments;
    for found in devices {
        records.is_cut |= is_full(&found.references);
        clicks.extend(clicks_of_device(&found.state, &found.references));
        records.payments.extend(found.references.payments.clone());
        read_device(tables, scope, subject, found, &mut records).await?;
    }
    records.clicks = own_clicks(tables, scope, &records.ids, &clicks).await?;
    Ok(records)
}

async fn find_device<T: Tables + PersonTable>(
    tables: &T,
    scope: Scope,
    key: DeviceKey,
) -> Result<FoundDevice, T::Failure> {
    let device = device_ref(scope, &key);
    Ok(FoundDevice {
        state: tables.device_state(device).await?,
        references: tables
            .references_of_device(device, PERSON_REFERENCES_MAX)
            .await?,
        key,
    })
}

const fn device_ref((app, environment): Scope, key: &DeviceKey) -> DeviceRef<'_> {
    DeviceRef {
        app,
        environment,
        key,
    }
}

/// Collects the ids that belong to the person, as an erasure does.
async fn collect_ids<T: Tables>(
    tables: &T,
    scope: Scope,
    subject: &DataSubject,
    devices: &[FoundDevice],
    records: &mut PersonRecords,
) -> Result<(), T::Failure> {
    let ids = &mut records.ids;
    for found in devices {
        let linked = tables.linked_people(device_ref(scope, &found.key)).await?;
        let users = users_of_device(&found.state, linked, &found.references);
        ids.users.extend(users);
        ids.devices.insert(found.key.clone());
        let known = found.state.device.as_ref();
        let advertising = known.and_then(|device| device.advertising_id.clone());
        ids.advertising.extend(advertising);
    }
    remove_shared(tables, scope, &ids.devices, &mut ids.users).await?;
    if let DataSubject::User(user) = subject {
        ids.users.insert(user.clone());
    }
    Ok(())
}

/// Returns whether anything is stored about the person.
async fn exists<T: Tables + PersonTable>(
    tables: &T,
    scope: Scope,
    subject: &DataSubject,
    (devices, records): (&[FoundDevice], &PersonRecords),
) -> Result<bool, T::Failure> {
    let is_known = match subject {
        DataSubject::Device(_) => devices.iter().any(|found| !found.state.is_empty()),
        DataSubject::User(_) => !devices.is_empty() || !records.left_out.is_empty(),
    };
    if is_known {
        return Ok(true);
    }
    let owner = match subject {
        DataSubject::Device(key) => EventOwner::Device(key.clone()),
        DataSubject::User(user) => EventOwner::User(user.clone()),
    };
    if !tables
        .events_of_person(scope, &owner, None, 1)
        .await?
        .is_empty()
    {
        return Ok(true);
    }
    let keys = records.ids.subscription_keys();
    let subscriptions = tables.chains_by_key(scope, &keys, 1).await?;
    Ok(matches!(subject, DataSubject::User(_)) && !subscriptions.is_empty())
}

/// Reads what is stored about a device. A user who asks sees no other user of the device.
async fn read_device<T: Tables + PersonTable>(
    tables: &T,
    scope: Scope,
    subject: &DataSubject,
    mut found: FoundDevice,
    records: &mut PersonRecords,
) -> Result<(), T::Failure> {
    let device = device_ref(scope, &found.key);
    let is_included = |user: &UserKey| subject.includes_user(&records.ids, user);
    if !found.state.identity.user.as_ref().is_none_or(is_included) {
        found.state.identity = Identity::default();
    }
    let links = tables.links_of_device(device).await?.into_iter();
    let links: Vec<_> = links.filter(|link| is_included(&link.user)).collect();
    let mut details = tables.person_device_details(device).await?;
    let member = CohortMember {
        app: device.app,
        environment: device.environment,
        device: found.key.clone(),
    };
    let cohort = tables.cohort_devices(&BTreeSet::from([&member])).await?;
    let row = cohort.into_iter().next();
    details.cohort = row.map(|(_, row)| row.read()).transpose()?;
    records.links.extend(links);
    records.devices.push(PersonDevice {
        key: found.key,
        state: found.state,
        details,
    });
    Ok(())
}

/// Returns those of the clicks that are the person's.
async fn own_clicks<T: Tables + ReplayTable>(
    tables: &T,
    scope: Scope,
    ids: &PersonIds,
    clicks: &BTreeSet<ClickId>,
) -> Result<Vec<StoredClick>, T::Failure> {
    let found = tables.replay_clicks(scope.0, clicks).await?.into_iter();
    let stored = found.map(|one| StoredClick {
        click: one.click,
        taken_by: one.owner.map(|owner| owner.device),
    });
    let own = stored.filter(|one| ids.own_click(scope.1, one));
    let by_id: BTreeMap<ClickId, StoredClick> = own.map(|one| (one.click.id, one)).collect();
    Ok(by_id.into_values().collect())
}

/// Records an export in the audit log. The log outlives an erased device, so the entry names
/// attributions instead of devices and users.
pub async fn note_person_export<T: Tables>(
    tables: &T,
    (organization, app): (OrganizationId, AppId),
    subject: &DataSubject,
    records: &PersonRecords,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    /// Maximum number of attributions that an entry names. A real user has a few devices.
    const NAMED_MAX: usize = 20;
    tables.require_app(organization, app).await?;
    let attributions = records.devices.iter().filter_map(|device| {
        let attribution = device.state.attribution.as_ref()?;
        Some(attribution.id.to_string())
    });
    let named: Vec<String> = attributions.take(NAMED_MAX).collect();
    let (action, target) = match subject {
        DataSubject::Device(_) => (Action::DeviceExported, named.first().cloned()),
        DataSubject::User(_) => (Action::AppUserExported, None),
    };
    let target = target.unwrap_or_else(|| format!("{} devices", records.devices.len()));
    let mut changes = Changes::new();
    changes.initial("attributions", Some(named.join(", ")));
    let changes = changes.into_vec();
    let row = audit_row(organization, origin, action, Some(app), target, &changes);
    tables.insert_audit(&row).await
}

/// Finds the subscriptions that may contain notifications about a person.
pub async fn person_chains<T: Tables>(
    tables: &T,
    scope: Scope,
    records: &PersonRecords,
) -> Result<Vec<Chain>, T::Failure> {
    let payments = &records.payments;
    let chains = find_chains_of_person(tables, scope, &records.ids, payments).await?;
    Ok(chains.into_iter().collect())
}

/// Reads the notifications of a subscription that are about a person.
pub async fn person_subscription<T: Tables + PersonTable>(
    tables: &T,
    (subject, ids): (&DataSubject, &PersonIds),
    chain: Chain,
) -> Result<Option<PersonSubscription>, T::Failure> {
    let mut bodies = tables.notification_bodies(&chain).await?;
    let all = tables.all_notifications(&chain).await?.into_iter();
    let is_own = |one: &Notification| {
        (ids.own_notification(one) || ids.own_transfer(one))
            && subject.includes_notification(ids, one)
    };
    let shown = |notification: Notification| {
        let body = bodies.remove(&notification.content.external_id);
        let may_see_body = ids.may_see_body(subject, &notification);
        let (notification, other_users) = ids.without_others(subject, notification);
        PersonNotification {
            body: body.filter(|_| may_see_body),
            notification,
            other_users,
        }
    };
    let mut notifications: Vec<_> = all.filter(is_own).map(shown).collect();
    if notifications.is_empty() {
        return Ok(None);
    }
    notifications.sort_by_key(|one| (one.notification.happened_at, one.notification.event));
    Ok(Some(PersonSubscription {
        trial: tables.trial(&chain).await?,
        notifications,
        chain,
    }))
}

/// Reads a part of a person's events.
pub async fn person_events<T: PersonTable>(
    tables: &T,
    scope: Scope,
    query: &PersonEventsQuery,
) -> Result<PersonEvents, T::Failure> {
    let (owner, limit) = (&query.owner, query.limit);
    let mut events = tables
        .events_of_person(scope, owner, query.after, limit)
        .await?;
    let last = events.last().map(|event| event.id);
    let next = last.filter(|_| events.len() >= limit);
    events.retain(|event| query.subject.includes(&query.ids, event));
    Ok(PersonEvents { events, next })
}
