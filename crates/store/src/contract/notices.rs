//! Notices.

use super::fixtures::{SharedStore, at, first_page, origin, refusal, unique};
use super::sdk_fixtures::{Tenant, tenant};
use crate::{CheckedNotice, DueMessage, SentMessage};
use tributary_domain::attribution::CreditedNetwork;
use tributary_domain::audit::Action;
use tributary_domain::forwarding::alert::{Alert, AlertKind};
use tributary_domain::integration::Network;
use tributary_domain::keyring::seal::SealedSecret;
use tributary_domain::notice::{
    ChannelUrl, MailAddress, MessageOutcome, NOTICES_MAX, Notice, NoticeChannel, NoticeProgress,
    NoticeSettings, NoticeTopic, Occasion, Threshold, ThresholdCondition, ThresholdWindow, Weekday,
    example_alert,
};
use tributary_domain::refusal::Refusal;
use tributary_domain::report::metric::{Counted, Metric, Trend, Unit};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AlertId, NoticeId};
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::revision::{Precondition, Revision};
use tributary_domain::vocabulary::text::Name;

fn email() -> NoticeChannel {
    let addresses = ["team@example.com", "o'neil+ads@example.com"];
    let parsed = addresses.map(|text| MailAddress::parse(text).expect("an address"));
    NoticeChannel::Email(parsed.to_vec())
}

fn url() -> ChannelUrl {
    ChannelUrl {
        sealed: SealedSecret::from_bytes(vec![1, 0, 255]),
        origin: "https://hooks.example.com".to_owned(),
    }
}

fn settings(topic: NoticeTopic, channel: NoticeChannel) -> NoticeSettings {
    NoticeSettings {
        name: Name::parse("Über \"alles\"").expect("a name"),
        active: true,
        channel,
        topic,
    }
}

fn all_settings() -> Vec<NoticeSettings> {
    let threshold = |network: Option<Network>| {
        NoticeTopic::Threshold(Threshold {
            metric: Metric::find("paidRoas").expect("a metric"),
            condition: ThresholdCondition::Under,
            value: Amount::from_micros(-1_500_000),
            window: ThresholdWindow::Week,
            network: network.map(CreditedNetwork::Ad),
        })
    };
    let weekday = Weekday::Sunday;
    vec![
        settings(NoticeTopic::DailySummary { hour: 23 }, email()),
        settings(
            NoticeTopic::WeeklySummary { weekday, hour: 0 },
            NoticeChannel::Slack(url()),
        ),
        settings(threshold(Some(Network::C)), NoticeChannel::Webhook(url())),
        settings(threshold(None), email()),
        settings(NoticeTopic::IntegrationPaused, email()),
        settings(NoticeTopic::TrafficAnomaly, email()),
    ]
}

async fn store_notice(one: &Tenant, settings: NoticeSettings, seconds: i64) -> Notice {
    let notice = Notice {
        id: NoticeId::new(at(seconds), unique()),
        app: one.app.id,
        progress: settings
            .topic
            .first_progress(&one.app.timezone, at(seconds)),
        settings,
        owner: None,
        last_sent_at: None,
        last_error: None,
        created_at: at(seconds),
        updated_at: at(seconds),
        revision: Revision::FIRST,
    };
    let created = one
        .store
        .create_notice(&one.writer, notice, origin(seconds));
    created.await.expect("a notice")
}

/// Every kind of notice survives storing, replacing and deleting, with audit entries.
pub async fn a_notice_is_stored_replaced_and_deleted(store: &SharedStore) {
    let one = tenant(store).await;
    let (reader, app) = (one.writer.read_access(), one.app.id);
    let mut stored = Vec::new();
    for (seconds, settings) in (10..).zip(all_settings()) {
        stored.push(store_notice(&one, settings, seconds).await);
    }
    assert_eq!(store.notices(&reader, app).await.expect("a list"), stored);
    for (notice, settings) in stored.iter().zip(all_settings().into_iter().rev()) {
        let of = (app, notice.id);
        let replaced = store
            .replace_notice(
                &one.writer,
                of,
                settings.clone(),
                Precondition::None,
                origin(30),
            )
            .await
            .expect("a change");
        assert_eq!(
            (&replaced.settings, replaced.revision.number()),
            (&settings, 2)
        );
        let found = store.notice(&reader, app, notice.id).await;
        assert_eq!(found.expect("a notice"), replaced);
        let outdated = Precondition::AnyOf(vec!["1".to_owned()]);
        let refused = store.replace_notice(&one.writer, of, settings, outdated, origin(31));
        assert_eq!(refusal(refused.await), Refusal::VersionConflict);
    }
    for notice in &stored {
        let delete = || {
            let none = Precondition::None;
            store.delete_notice(&one.writer, app, notice.id, none, origin(40))
        };
        delete().await.expect("deleted");
        assert_eq!(refusal(delete().await), Refusal::NoticeNotFound);
    }
    assert_eq!(store.notices(&reader, app).await.expect("a list"), []);
    let log = store.audit_log(&reader, Some(app), first_page("500"));
    let log: Vec<Action> = log
        .await
        .expect("a log")
        .items
        .iter()
        .map(|entry| entry.action)
        .collect();
    for action in [
        Action::NoticeCreated,
        Action::NoticeUpdated,
        Action::NoticeDeleted,
    ] {
        let count = log.iter().filter(|one| **one == action).count();
        assert_eq!(count, stored.len(), "{action:?}");
    }
}

/// Another organization, or another app, neither sees nor changes a notice.
pub async fn others_see_no_notices(store: &SharedStore) {
    let (one, other) = (tenant(store).await, tenant(store).await);
    let topic = NoticeTopic::IntegrationPaused;
    let notice = store_notice(&one, settings(topic, email()), 10).await;
    let reader = other.writer.read_access();
    let (app, id) = (one.app.id, notice.id);
    let none = || Precondition::None;
    assert_eq!(
        refusal(store.notices(&reader, app).await),
        Refusal::AppNotFound
    );
    assert_eq!(
        refusal(store.notice(&reader, app, id).await),
        Refusal::AppNotFound
    );
    let own = other.app.id;
    assert_eq!(
        refusal(store.notice(&reader, own, id).await),
        Refusal::NoticeNotFound
    );
    let refused = store.delete_notice(&other.writer, app, id, none(), origin(11));
    assert_eq!(refusal(refused.await), Refusal::AppNotFound);
    let refused = store.delete_notice(&other.writer, own, id, none(), origin(11));
    assert_eq!(refusal(refused.await), Refusal::NoticeNotFound);
    let settings = notice.settings.clone();
    let refused = store.replace_notice(&other.writer, (own, id), settings, none(), origin(11));
    assert_eq!(refusal(refused.await), Refusal::NoticeNotFound);
    let found = store.notice(&one.writer.read_access(), app, id).await;
    assert_eq!(found.expect("unchanged"), notice);
}

/// The limit counts each app alone.
pub async fn an_app_has_a_limited_number_of_notices(store: &SharedStore) {
    let (one, other) = (tenant(store).await, tenant(store).await);
    let new = || settings(NoticeTopic::TrafficAnomaly, email());
    let mut last = None;
    for _ in 0..NOTICES_MAX {
        last = Some(store_notice(&one, new(), 10).await);
    }
    let another = Notice {
        id: NoticeId::new(at(11), unique()),
        ..last.expect("a notice")
    };
    let refused = store.create_notice(&one.writer, another, origin(11));
    assert_eq!(refusal(refused.await), Refusal::TooManyNotices);
    store_notice(&other, new(), 12).await;
}

/// A due notice is leased once, and settled with its message.
pub async fn one_node_looks_at_a_due_notice(store: &SharedStore) {
    let one = tenant(store).await;
    let daily = settings(NoticeTopic::DailySummary { hour: 8 }, email());
    let notice = store_notice(&one, daily, 10).await;
    store_notice(&one, settings(NoticeTopic::TrafficAnomaly, email()), 10).await;
    let lease = async |now| {
        store
            .lease_notices(at(now), at(now + 60), 10)
            .await
            .expect("leases")
            .due
    };
    assert_eq!(lease(9).await, []);
    let due = lease(11).await;
    assert_eq!(due.len(), 1, "a notice that follows alerts is never due");
    let found = (&due[0].notice, due[0].organization);
    assert_eq!(found, (&notice, one.writer.organization()));
    assert_eq!(lease(12).await, [], "leased");
    assert_eq!(lease(71).await.len(), 1, "the lease ended");
    let progress = NoticeProgress {
        done_until: Some(Day::from_days(20_000)),
        is_beyond: true,
    };
    let day = Day::from_days(20_000);
    let checked = CheckedNotice {
        notice: notice.clone(),
        progress,
        due_at: Some(at(500)),
        occasion: Some(Occasion::Summary { from: day, to: day }),
        at: at(72),
    };
    store.settle_notice(checked).await.expect("settled");
    assert_eq!(lease(200).await, [], "not due before its time");
    let again = lease(500).await;
    assert_eq!(again[0].notice.progress, progress);
    let due = messages(store, 80).await;
    assert_eq!((due.len(), due[0].attempts), (1, 1));
    assert_eq!(due[0].occasion, Occasion::Summary { from: day, to: day });
    assert_eq!(due[0].organization, one.writer.organization());
}

/// A notice that was changed or deleted while a node looked at it sends nothing.
pub async fn a_changed_notice_is_not_settled(store: &SharedStore) {
    let one = tenant(store).await;
    let daily = || settings(NoticeTopic::DailySummary { hour: 8 }, email());
    let notice = store_notice(&one, daily(), 10).await;
    let changed = NoticeSettings {
        name: Name::parse("Another").expect("a name"),
        ..daily()
    };
    let of = (notice.app, notice.id);
    let none = || Precondition::None;
    let replaced = store.replace_notice(&one.writer, of, changed, none(), origin(12));
    replaced.await.expect("a change");
    let day = Day::from_days(20_000);
    let settle = async || {
        let checked = CheckedNotice {
            notice: notice.clone(),
            progress: NoticeProgress::default(),
            due_at: None,
            occasion: Some(Occasion::Summary { from: day, to: day }),
            at: at(13),
        };
        store.settle_notice(checked).await.expect("ignored");
    };
    settle().await;
    assert_eq!(messages(store, 20).await, []);
    let deleted = store.delete_notice(&one.writer, of.0, of.1, none(), origin(14));
    deleted.await.expect("deleted");
    settle().await;
    assert_eq!(messages(store, 21).await, []);
}

/// A metric that this version cannot read back, as if a later version had stored it.
static LATER_METRIC: Metric = Metric {
    word: "metricOfALaterVersion",
    label: "Later",
    unit: Unit::Count,
    trend: Trend::MoreIsBetter,
    is_sum: true,
    needs_cost: false,
    counted: Counted::Other,
    of: |_| None,
};

/// A notice that cannot be read holds up neither other notices nor messages nor alerts, even if it
/// has been due longest.
pub async fn an_unreadable_notice_holds_up_nothing(store: &SharedStore) {
    let one = tenant(store).await;
    let unreadable = NoticeTopic::Threshold(Threshold {
        metric: &LATER_METRIC,
        condition: ThresholdCondition::Under,
        value: Amount::from_micros(1),
        window: ThresholdWindow::Day,
        network: None,
    });
    let unreadable = store_notice(&one, settings(unreadable, email()), 10).await;
    let day = Day::from_days(20_000);
    let settle = async |notice: &Notice, seconds| {
        let checked = CheckedNotice {
            notice: notice.clone(),
            progress: NoticeProgress::default(),
            due_at: Some(at(500)),
            occasion: Some(Occasion::Summary { from: day, to: day }),
            at: at(seconds),
        };
        store.settle_notice(checked).await.expect("settled");
    };
    let leased = store.lease_notices(at(11), at(71), 10).await;
    let leased = leased.expect("leases");
    assert_eq!(leased.unreadable, [unreadable.id.to_string()]);
    settle(&unreadable, 11).await;
    let reader = one.writer.read_access();
    assert!(store.notices(&reader, one.app.id).await.is_err());

    let other = tenant(store).await;
    let daily = settings(NoticeTopic::DailySummary { hour: 8 }, email());
    let readable = store_notice(&other, daily, 12).await;
    let leased = store.lease_notices(at(600), at(660), 10).await;
    let leased = leased.expect("leases");
    assert_eq!(leased.due.len(), 1);
    assert_eq!(leased.unreadable.len(), 1);
    settle(&readable, 13).await;
    let sent = store.lease_messages(at(700), at(760), 10).await;
    let sent = sent.expect("messages");
    assert_eq!((sent.due.len(), sent.unreadable.len()), (1, 1));
    assert_eq!(sent.due[0].notice_id, readable.id);
    let alert = example_alert(one.app.id, AlertKind::IntegrationPaused, at(20));
    let queued = store.queue_alert_messages(alert, at(20)).await;
    queued.expect("an alert is queued for readable notices");
}

async fn messages(store: &SharedStore, now: i64) -> Vec<DueMessage> {
    let due = store.lease_messages(at(now), at(now + 60), 10).await;
    due.expect("messages").due
}

/// An alert becomes one message for each notice on it, also if it is queued again.
pub async fn an_alert_queues_one_message_per_notice(store: &SharedStore) {
    let (one, other) = (tenant(store).await, tenant(store).await);
    let paused = || settings(NoticeTopic::IntegrationPaused, email());
    let first = store_notice(&one, paused(), 10).await;
    let second = store_notice(&one, paused(), 11).await;
    let off = NoticeSettings {
        active: false,
        ..paused()
    };
    store_notice(&one, off, 12).await;
    store_notice(&one, settings(NoticeTopic::TrafficAnomaly, email()), 12).await;
    store_notice(&other, paused(), 12).await;
    let mut alert = example_alert(one.app.id, AlertKind::IntegrationPaused, at(20));
    alert.id = AlertId::new(at(20), unique());
    let queue = async |now| {
        let queued = store.queue_alert_messages(alert.clone(), at(now));
        queued.await.expect("queued");
    };
    queue(21).await;
    queue(22).await;
    let due = messages(store, 30).await;
    let mut notices: Vec<_> = due
        .iter()
        .map(|one| one.notice.as_ref().expect("a notice").id)
        .collect();
    notices.sort_unstable();
    assert_eq!(notices, [first.id, second.id]);
    assert!(
        due.iter()
            .all(|one| one.occasion == Occasion::Alert(alert.clone()))
    );
    for message in &due {
        settle(store, message, MessageOutcome::Sent, None, 31).await;
    }
    queue(32).await;
    assert_eq!(
        messages(store, 33).await,
        [],
        "a finished message is not sent again"
    );
}

async fn settle(
    store: &SharedStore,
    message: &DueMessage,
    outcome: MessageOutcome,
    retry_at: Option<i64>,
    now: i64,
) {
    let sent = SentMessage {
        app: message.app,
        notice: message.notice_id,
        message: message.id,
        attempts: message.attempts,
        outcome,
        retry_at: retry_at.map(at),
        at: at(now),
    };
    store.settle_message(sent).await.expect("settled");
}

fn failed() -> MessageOutcome {
    MessageOutcome::Failed("It is down.".to_owned())
}

/// Attempts are counted; the notice shows the last error and the last success. A result that comes
/// after another attempt began changes nothing, and a skipped message does not change the notice.
pub async fn a_message_is_retried_and_then_finished(store: &SharedStore) {
    let one = tenant(store).await;
    let topic = NoticeTopic::IntegrationPaused;
    let notice = store_notice(&one, settings(topic, email()), 10).await;
    let alert = example_alert(one.app.id, AlertKind::IntegrationPaused, at(20));
    let queue = async |id, now| {
        let alert = Alert {
            id,
            ..alert.clone()
        };
        let queued = store.queue_alert_messages(alert, at(now));
        queued.await.expect("queued");
    };
    queue(AlertId::new(at(20), unique()), 20).await;
    let state = async || {
        let reader = one.writer.read_access();
        let found = store.notice(&reader, notice.app, notice.id);
        let found = found.await.expect("a notice");
        (found.last_sent_at, found.last_error)
    };
    let due = messages(store, 20).await;
    assert_eq!(messages(store, 21).await, [], "leased");
    settle(store, &due[0], failed(), Some(90), 22).await;
    let down = Some("It is down.".to_owned());
    assert_eq!(state().await, (None, down.clone()));
    assert_eq!(messages(store, 89).await, []);
    let again = messages(store, 90).await;
    assert_eq!((again[0].id, again[0].attempts), (due[0].id, 2));
    settle(store, &due[0], MessageOutcome::Sent, None, 91).await;
    assert_eq!(state().await, (None, down.clone()), "another attempt runs");
    settle(store, &again[0], MessageOutcome::Sent, None, 92).await;
    assert_eq!(state().await, (Some(at(92)), None));
    settle(store, &due[0], failed(), Some(95), 93).await;
    assert_eq!(state().await, (Some(at(92)), None), "a slow node is late");
    assert_eq!(messages(store, 999).await, [], "sent once");
    queue(AlertId::new(at(1_000), unique()), 1_000).await;
    let due = messages(store, 1_000).await;
    settle(store, &due[0], failed(), Some(1_010), 1_001).await;
    let due = messages(store, 1_010).await;
    settle(store, &due[0], MessageOutcome::Skipped, None, 1_011).await;
    assert_eq!(state().await, (Some(at(92)), down), "nothing was sent");
    assert_eq!(messages(store, 9_999).await, []);
}
