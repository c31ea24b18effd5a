//! What happens to a member's notices when the member is removed.

use super::fixtures::{SharedStore, at, first_page, origin, refusal, unique};
use super::keys::{by, created, full_key};
use super::sdk_fixtures::{Tenant, tenant};
use super::sessions::user;
use crate::TakeOver;
use std::collections::BTreeSet;
use tributary_domain::access::person::{Role, User};
use tributary_domain::access::{Actor, Authorized, MembersWrite};
use tributary_domain::audit::Action;
use tributary_domain::notice::{MailAddress, Notice, NoticeChannel, NoticeSettings, NoticeTopic};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::{NoticeId, UserId};
use tributary_domain::vocabulary::revision::{Precondition, Revision};
use tributary_domain::vocabulary::text::Name;

fn settings(address: &str) -> NoticeSettings {
    NoticeSettings {
        name: Name::parse("Every morning").expect("a name"),
        active: true,
        channel: NoticeChannel::Email(vec![MailAddress::parse(address).expect("an address")]),
        topic: NoticeTopic::DailySummary { hour: 8 },
    }
}

fn new_notice(one: &Tenant) -> Notice {
    let settings = settings("private@example.net");
    Notice {
        id: NoticeId::new(at(10), unique()),
        app: one.app.id,
        progress: settings.topic.first_progress(&one.app.timezone, at(10)),
        settings,
        owner: None,
        last_sent_at: None,
        last_error: None,
        created_at: at(10),
        updated_at: at(10),
        revision: Revision::FIRST,
    }
}

async fn notice_by(one: &Tenant, actor: Actor) -> Notice {
    let origin = by(actor, 10);
    let created = one
        .store
        .create_notice(&one.writer, new_notice(one), origin);
    created.await.expect("a notice")
}

fn managing(one: &Tenant) -> Authorized<MembersWrite> {
    Authorized::operator(one.writer.organization())
}

async fn member(one: &Tenant, role: Role) -> User {
    user(&one.store, one.writer.organization(), role).await
}

async fn active_of(one: &Tenant, owner: Option<UserId>) -> Vec<NoticeId> {
    let listed = one.store.active_notices(&managing(one), owner).await;
    let listed = listed.expect("a list").into_iter();
    listed.map(|notice| notice.id).collect()
}

async fn stored(one: &Tenant, notice: &Notice) -> Notice {
    let reader = one.writer.read_access();
    let found = one.store.notice(&reader, one.app.id, notice.id);
    found.await.expect("the notice")
}

/// A notice belongs to the member who chose its channel, also through a key.
pub async fn a_notice_belongs_to_the_member_who_chose_its_channel(store: &SharedStore) {
    let one = tenant(store).await;
    let (first, second) = (
        member(&one, Role::Admin).await,
        member(&one, Role::Admin).await,
    );
    let (first, second) = (first.id, second.id);
    let key = full_key(one.writer.organization());
    let key = created(store, key, Actor::User(first)).await;
    let by_key = notice_by(&one, Actor::Key(key.id)).await;
    let by_operator = notice_by(&one, Actor::Operator).await;
    assert_eq!((by_key.owner, by_operator.owner), (Some(first), None));
    assert_eq!(stored(&one, &by_key).await, by_key);
    let replace = async |settings| {
        let (of, origin) = ((one.app.id, by_key.id), by(Actor::User(second), 11));
        let replaced = store.replace_notice(&one.writer, of, settings, Precondition::None, origin);
        replaced.await.expect("a change").owner
    };
    let renamed = NoticeSettings {
        name: Name::parse("Other").expect("a name"),
        ..by_key.settings.clone()
    };
    assert_eq!(replace(renamed).await, Some(first));
    assert_eq!(active_of(&one, Some(first)).await, [by_key.id]);
    assert_eq!(replace(settings("me@example.org")).await, Some(second));
    assert_eq!(active_of(&one, Some(first)).await, []);
    assert_eq!(active_of(&one, Some(second)).await, [by_key.id]);
    assert_eq!(active_of(&one, None).await, [by_operator.id]);
    let elsewhere = managing(&tenant(store).await);
    let listed = store.active_notices(&elsewhere, Some(second)).await;
    assert_eq!(listed.expect("a list"), []);
}

/// Removing a member pauses their notices, except those that the acting member keeps.
pub async fn notices_of_a_removed_member_are_paused_or_kept(store: &SharedStore) {
    let one = tenant(store).await;
    let (leaving, owner) = (
        member(&one, Role::Admin).await,
        member(&one, Role::Owner).await,
    );
    let paused = notice_by(&one, Actor::User(leaving.id)).await;
    let kept = notice_by(&one, Actor::User(leaving.id)).await;
    let others = notice_by(&one, Actor::User(owner.id)).await;
    let unknown = notice_by(&one, Actor::Operator).await;
    let take_over = TakeOver {
        notices: BTreeSet::from([kept.id, others.id]),
        ..TakeOver::default()
    };
    let (manager, origin) = (managing(&one), by(Actor::User(owner.id), 20));
    let removed = store.remove_member(&manager, leaving.id, take_over, origin);
    removed.await.expect("removed");
    let now_paused = stored(&one, &paused).await;
    assert!(!now_paused.settings.active);
    assert_eq!(now_paused.revision.number(), 2);
    let now_kept = stored(&one, &kept).await;
    assert_eq!(
        (now_kept.settings.active, now_kept.owner),
        (true, Some(owner.id))
    );
    for same in [&others, &unknown] {
        assert_eq!(&stored(&one, same).await, same);
    }
    let due = store
        .lease_notices(at(100), at(200), 10)
        .await
        .expect("due notices");
    let due: BTreeSet<_> = due.due.iter().map(|due| due.notice.id).collect();
    assert!(
        !due.contains(&paused.id) && due.contains(&kept.id),
        "{due:?}"
    );
    let reader = one.writer.read_access();
    let log = store.audit_log(&reader, Some(one.app.id), first_page("50"));
    let log = log.await.expect("the log").items.into_iter();
    let updated = log.filter(|entry| entry.action == Action::NoticeUpdated);
    let updated: BTreeSet<_> = updated
        .map(|entry| (entry.target, entry.changes[0].field.clone()))
        .collect();
    let expected = [(paused.id, "active"), (kept.id, "owner")];
    let expected = expected.map(|(id, field)| (id.to_string(), field.to_owned()));
    assert_eq!(updated, BTreeSet::from(expected));
}

/// While a member is removed, notices that they create or change concurrently are refused or paused.
pub async fn no_notice_survives_a_concurrent_removal(store: &SharedStore) {
    let one = tenant(store).await;
    let leaving = member(&one, Role::Admin).await;
    let foreign = notice_by(&one, Actor::Operator).await;
    let key = full_key(one.writer.organization());
    let key = created(store, key, Actor::User(leaving.id)).await;
    let create = async |actor: Actor| {
        let created = store.create_notice(&one.writer, new_notice(&one), by(actor, 20));
        drop(created.await);
    };
    let redirect = async || {
        let (of, origin) = ((one.app.id, foreign.id), by(Actor::Key(key.id), 20));
        let settings = settings("private@example.org");
        let replaced = store.replace_notice(&one.writer, of, settings, Precondition::None, origin);
        drop(replaced.await);
    };
    let remove = async || {
        let (manager, nothing) = (managing(&one), TakeOver::default());
        let removed = store.remove_member(&manager, leaving.id, nothing, origin(20));
        removed.await.expect("removed");
    };
    let (user, by_key) = (Actor::User(leaving.id), Actor::Key(key.id));
    tokio::join!(
        create(user.clone()),
        create(by_key.clone()),
        remove(),
        redirect(),
        create(user)
    );
    assert_eq!(active_of(&one, Some(leaving.id)).await, []);
    let late = store.create_notice(&one.writer, new_notice(&one), by(by_key, 21));
    assert_eq!(refusal(late.await), Refusal::MemberNotFound);
}
