//! Tests of drafts, changes and messages.

use super::samples::{figures, threshold};
use super::*;
use crate::access::person::tests::any_user;
use crate::access::person::{Role, User};
use crate::app::{App, AppCreation};
use crate::report::metric::Metric;
use crate::report::range::DayRange;
use crate::vocabulary::day::Day;
use crate::vocabulary::fault::Faults;
use crate::vocabulary::field_input::FieldInput::{Absent, Value};
use crate::vocabulary::id::OrganizationId;
use crate::vocabulary::money::Amount;
use crate::vocabulary::timezone::Timezone;
use crate::vocabulary::web_url::HttpsUrl;
use rstest::rstest;
use std::collections::BTreeSet;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn mail(text: &str) -> MailAddress {
    MailAddress::parse(text).unwrap()
}

fn input() -> NoticeInput {
    NoticeInput {
        name: Value(Name::parse("Every morning").unwrap()),
        channel: Value(ChannelKind::Email),
        recipients: Value(vec![mail("team@example.com")]),
        topic: Value(TopicKind::DailySummary),
        hour: Value(8),
        ..NoticeInput::default()
    }
}

fn limit() -> NoticeInput {
    NoticeInput {
        topic: Value(TopicKind::Threshold),
        hour: Absent,
        metric: Value(Metric::find("installs").unwrap()),
        condition: Value(ThresholdCondition::Over),
        value: Value(Amount::from_micros(10_000_000)),
        window: Value(ThresholdWindow::Day),
        ..input()
    }
}

fn slack(url: Option<&str>) -> NoticeInput {
    NoticeInput {
        channel: Value(ChannelKind::Slack),
        recipients: Absent,
        url: url.map_or(Absent, |url| Value(HttpsUrl::parse(url).unwrap())),
        ..input()
    }
}

#[rstest]
#[case::daily(input(), &[])]
#[case::threshold(limit(), &[])]
#[case::paused(NoticeInput { topic: Value(TopicKind::IntegrationPaused), hour: Absent, ..input() }, &[])]
#[case::nothing(NoticeInput::default(), &["channel", "topic", "name"])]
#[case::no_recipients(NoticeInput { recipients: Value(Vec::new()), ..input() }, &["recipients"])]
#[case::no_hour(NoticeInput { hour: Absent, ..input() }, &["hour"])]
#[case::late_hour(NoticeInput { hour: Value(24), ..input() }, &["hour"])]
#[case::weekly(NoticeInput { topic: Value(TopicKind::WeeklySummary), hour: Absent, ..input() }, &["weekday", "hour"])]
#[case::other_fields(NoticeInput { metric: Value(Metric::find("cost").unwrap()), weekday: Value(Weekday::Monday), ..input() }, &["metric", "weekday"])]
#[case::half_a_threshold(NoticeInput { metric: Absent, window: Absent, hour: Value(3), ..limit() }, &["hour", "metric", "window"])]
#[case::half_an_install(NoticeInput { value: Value(Amount::from_micros(1_500_000)), ..limit() }, &["value"])]
#[case::url_of_a_mail(NoticeInput { url: Value(HttpsUrl::parse("https://a.example.com").unwrap()), ..input() }, &["url"])]
#[case::recipients_of_slack(NoticeInput { recipients: Value(vec![mail("a@example.com")]), ..slack(None) }, &["recipients"])]
fn every_faulty_field_is_named(#[case] input: NoticeInput, #[case] expected: &[&str]) {
    let mut faults = Faults::new();
    let draft = input.check(&mut faults);
    let fields: Vec<&str> = faults.iter().map(|fault| fault.field.as_str()).collect();
    assert_eq!(fields, expected);
    if expected.is_empty() {
        assert!(draft.is_some());
    }
}

#[test]
fn a_form_sends_fields_of_other_topics() {
    let all = NoticeInput {
        weekday: Value(Weekday::Monday),
        url: Value(HttpsUrl::parse("https://a.example.com").unwrap()),
        hour: Value(8),
        ..limit()
    };
    let mut faults = Faults::new();
    let draft = all.only_relevant().check(&mut faults).unwrap();
    assert!(faults.is_empty());
    assert_eq!(draft.topic.kind(), TopicKind::Threshold);
}

fn settings(input: NoticeInput, stored: Option<&NoticeChannel>) -> Result<NoticeSettings, Faults> {
    let draft = input.check(&mut Faults::new()).unwrap();
    draft.into_settings(stored, |url| {
        SealedSecret::from_bytes(url.as_bytes().to_vec())
    })
}

#[test]
fn a_stored_url_is_kept_for_the_same_channel_only() {
    let stored = settings(slack(Some("https://hooks.example.com/T1/secret")), None).unwrap();
    assert_eq!(
        stored.channel.url().unwrap().origin,
        "https://hooks.example.com"
    );
    let kept = settings(slack(None), Some(&stored.channel)).unwrap();
    assert_eq!(kept.channel, stored.channel);
    let webhook = NoticeInput {
        channel: Value(ChannelKind::Webhook),
        ..slack(None)
    };
    for missing in [
        settings(webhook, Some(&stored.channel)),
        settings(slack(None), None),
    ] {
        assert_eq!(missing.unwrap_err().iter().next().unwrap().field, "url");
    }
}

fn member(number: u8) -> UserId {
    UserId::from_bytes([number; 16])
}

fn notice(settings: NoticeSettings) -> Notice {
    Notice {
        id: NoticeId::from_bytes([1; 16]),
        app: AppId::from_bytes([2; 16]),
        progress: settings.topic.first_progress(&Timezone::UTC, at(0)),
        settings,
        owner: Some(member(1)),
        last_sent_at: None,
        last_error: Some("broken".to_owned()),
        created_at: at(0),
        updated_at: at(0),
        revision: Revision::FIRST,
    }
}

#[test]
fn a_change_is_audited_without_addresses_and_paths() {
    let before = notice(settings(input(), None).unwrap());
    let secret = slack(Some("https://hooks.example.com/T1/secret"));
    let after = settings(secret, None).unwrap();
    let changed = before
        .changed(after, &Precondition::None, (&Timezone::UTC, None), at(9))
        .unwrap();
    let text = format!("{:?} {:?}", changed.changes, before.creation_changes());
    assert!(
        !text.contains("secret") && !text.contains("team@"),
        "{text}"
    );
    assert!(text.contains("https://hooks.example.com"));
    assert_eq!(changed.after.revision.number(), 2);
    assert_eq!(changed.after.last_error, None);
}

#[test]
fn other_recipients_are_a_change_although_their_number_is_the_same() {
    let before = notice(settings(input(), None).unwrap());
    let other = NoticeInput {
        recipients: Value(vec![mail("other@example.com")]),
        ..input()
    };
    let after = settings(other, None).unwrap();
    let changed = before
        .changed(after, &Precondition::None, (&Timezone::UTC, None), at(9))
        .unwrap();
    assert_eq!(changed.changes.len(), 1);
    let same = settings(input(), None).unwrap();
    let same = before
        .changed(same, &Precondition::None, (&Timezone::UTC, None), at(9))
        .unwrap();
    assert_eq!((same.changes.len(), same.after.revision.number()), (0, 1));
}

#[test]
fn a_change_of_the_topic_starts_anew() {
    let before = notice(settings(input(), None).unwrap());
    let later = at(86_400_000 * 30);
    let renamed = NoticeInput {
        name: Value(Name::parse("Other").unwrap()),
        ..input()
    };
    for (changed, is_kept) in [(renamed, true), (limit(), false)] {
        let after = settings(changed, None).unwrap();
        let after = before
            .changed(after, &Precondition::None, (&Timezone::UTC, None), later)
            .unwrap()
            .after;
        assert_eq!(after.progress == before.progress, is_kept);
    }
}

#[rstest]
#[case::name(NoticeInput { name: Value(Name::parse("Other").unwrap()), ..input() }, 1)]
#[case::recipients(NoticeInput { recipients: Value(vec![mail("me@example.net")]), ..input() }, 2)]
#[case::url(slack(Some("https://hooks.example.com/T1/secret")), 2)]
fn a_member_who_changes_the_channel_becomes_the_owner(
    #[case] input: NoticeInput,
    #[case] owner: u8,
) {
    let before = notice(settings(self::input(), None).unwrap());
    let after = settings(input, None).unwrap();
    let by = (&Timezone::UTC, Some(member(2)));
    let changed = before.changed(after, &Precondition::None, by, at(9));
    assert_eq!(changed.unwrap().after.owner, Some(member(owner)));
}

#[rstest]
#[case::paused(Some(Role::Owner), false, "active")]
#[case::kept(Some(Role::Owner), true, "owner")]
#[case::kept_by_a_viewer(Some(Role::Viewer), true, "active")]
#[case::kept_by_the_operator(None, true, "active")]
fn notices_of_a_removed_member_are_paused_or_kept(
    #[case] by: Option<Role>,
    #[case] is_wanted: bool,
    #[case] changed_field: &str,
) {
    let by = by.map(|role| User {
        id: member(2),
        ..any_user(role)
    });
    let lost = notice(settings(input(), None).unwrap());
    let mut others = [lost.clone(), lost.clone(), lost.clone()];
    others[0].owner = Some(member(2));
    others[1].owner = None;
    others[2].settings.active = false;
    let wanted = BTreeSet::from_iter(is_wanted.then_some(lost.id));
    let notices: Vec<Notice> = others.into_iter().chain([lost.clone()]).collect();
    let changed = notices_of_removed_member(notices, member(1), (by.as_ref(), &wanted), at(9));
    let [changed] = changed.try_into().unwrap();
    assert_eq!(changed.changes.len(), 1);
    assert_eq!(changed.changes[0].field, changed_field);
    let after = changed.after;
    assert_eq!(after.settings.active, changed_field == "owner");
    let owner = if after.settings.active { 2 } else { 1 };
    assert_eq!(after.owner, Some(member(owner)));
    assert_eq!((after.revision.number(), after.updated_at), (2, at(9)));
}

#[test]
fn a_removed_member_cannot_keep_their_own_notices() {
    let lost = notice(settings(input(), None).unwrap());
    let by = User {
        id: member(1),
        ..any_user(Role::Owner)
    };
    let wanted = BTreeSet::from([lost.id]);
    let changed = notices_of_removed_member(vec![lost], by.id, (Some(&by), &wanted), at(9));
    assert!(!changed[0].after.settings.active);
}

fn alert(kind: AlertKind) -> Alert {
    example_alert(AppId::from_bytes([2; 16]), kind, at(1_700_000_000_000))
}

#[rstest]
#[case::paused(TopicKind::IntegrationPaused, AlertKind::IntegrationPaused, true)]
#[case::anomaly(TopicKind::TrafficAnomaly, AlertKind::TrafficAnomaly, true)]
#[case::another(TopicKind::TrafficAnomaly, AlertKind::IntegrationPaused, false)]
#[case::rates(TopicKind::IntegrationPaused, AlertKind::RatesStale, false)]
fn a_notice_wants_the_alerts_of_its_topic(
    #[case] topic: TopicKind,
    #[case] kind: AlertKind,
    #[case] expected: bool,
) {
    let input = NoticeInput {
        topic: Value(topic),
        hour: Absent,
        ..input()
    };
    let mut one = notice(settings(input, None).unwrap());
    assert_eq!(one.wants(&alert(kind)), expected);
    one.settings.active = false;
    assert!(!one.wants(&alert(kind)));
}

#[test]
fn message_ids_are_stable_and_distinct() {
    let one = notice(settings(input(), None).unwrap());
    let mut other = one.clone();
    other.id = NoticeId::from_bytes([9; 16]);
    let summary = |to| Occasion::Summary {
        from: Day::from_days(to),
        to: Day::from_days(to),
    };
    let alert = Occasion::Alert(alert(AlertKind::IntegrationPaused));
    assert_eq!(message_id(&one, &summary(1)), message_id(&one, &summary(1)));
    assert_ne!(message_id(&one, &summary(1)), message_id(&one, &summary(2)));
    assert_ne!(
        message_id(&one, &summary(1)),
        message_id(&other, &summary(1))
    );
    assert_ne!(message_id(&one, &alert), message_id(&other, &alert));
}

#[rstest]
#[case::first(1, Some(5))]
#[case::second(2, Some(300))]
#[case::last_but_one(7, Some(36_000))]
#[case::last(8, None)]
#[case::beyond(u32::MAX, None)]
fn a_message_is_retried_for_about_a_day(#[case] attempts: u32, #[case] expected: Option<u64>) {
    assert_eq!(retry_after(attempts).map(|wait| wait.as_secs()), expected);
}

fn app() -> App {
    let creation = AppCreation {
        id: AppId::from_bytes([2; 16]),
        organization: OrganizationId::from_bytes([3; 16]),
        at: at(0),
        live_key: "pk_live_1".to_owned(),
        test_key: "pk_test_1".to_owned(),
    };
    App::new(creation, Name::parse("Runner").unwrap())
}

fn day(text: &str) -> Day {
    Day::parse(text).unwrap()
}

#[test]
fn a_summary_shows_figures_and_changes() {
    let range = DayRange {
        from: day("2026-01-11"),
        to: day("2026-01-11"),
        zone: Timezone::UTC,
    };
    let networks = [("network_a".to_owned(), figures(8, Some(4_000_000)))];
    let facts = SummaryFacts {
        range: &range,
        now: &figures(10, Some(5_000_000)),
        before: &figures(8, Some(5_000_000)),
        networks: &networks,
    };
    let message = summary_message("https://t.example.com", &app(), &facts);
    assert!(
        message
            .subject
            .ends_with(": 10 installs and $25.00 net revenue, 11 Jan 2026"),
        "{}",
        message.subject
    );
    let text = message.text();
    for part in [
        "Installs              10  +25 %",
        "Changes compare with 10 Jan 2026.",
        "Meta",
        "ROAS (paid)         5.00",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let plain = |metric| {
        let found = message.values.iter().find(|one| one.metric == metric);
        found.map(|one| one.plain.as_str())
    };
    assert_eq!(
        (plain("installs"), plain("netRevenue"), plain("paidRoas")),
        (Some("10"), Some("25"), Some("5"))
    );
}

#[test]
fn a_threshold_message_names_metric_value_and_limit() {
    let range = DayRange {
        from: day("2026-01-05"),
        to: day("2026-01-11"),
        zone: Timezone::UTC,
    };
    let mut limit = threshold("cost", ThresholdCondition::Over, 100, ThresholdWindow::Week);
    limit.network = crate::attribution::CreditedNetwork::parse("network_a");
    let message = threshold_message(
        "https://t.example.com",
        &app(),
        &limit,
        &range,
        false,
        123_400_000,
    );
    assert!(
        message
            .subject
            .ends_with(": Spend of Meta over $100.00, 5 Jan 2026 to 11 Jan 2026"),
        "{}",
        message.subject
    );
    assert_eq!(
        message.lines[0],
        "Spend of Meta: $123.40, 5 Jan 2026 to 11 Jan 2026."
    );
    let example = threshold_message(
        "https://t.example.com",
        &app(),
        &limit,
        &range,
        false,
        99_000_000,
    );
    assert_eq!(
        (&*example.lines[0], example.lines.len(), message.lines.len()),
        (
            "Example: Spend of Meta is not over $100.00 now, so this message would not be sent.",
            3,
            2
        )
    );
    let running = threshold_message(
        "https://t.example.com",
        &app(),
        &limit,
        &range,
        true,
        123_400_000,
    );
    assert!(running.lines[0].ends_with("so far."));
}

#[test]
fn an_alert_message_leads_to_the_setting() {
    let message = alert_message(
        "https://t.example.com",
        &app(),
        &alert(AlertKind::IntegrationPaused),
    );
    assert!(
        message.subject.ends_with(": integration with Meta paused"),
        "{}",
        message.subject
    );
    assert!(message.link.ends_with("/integrations"));
}

#[test]
fn tests_are_limited_per_hour() {
    let mut recent = Vec::new();
    let admitted = (0..30).filter(|second| admit_test(&mut recent, at(second * 1_000)));
    assert_eq!(admitted.count(), 20);
    assert!(
        admit_test(&mut recent, at(3_600_000)),
        "an hour after the first"
    );
    assert!(!admit_test(&mut recent, at(3_600_000)));
}

#[test]
fn an_app_has_a_limited_number_of_notices() {
    assert!(admit_another(NOTICES_MAX - 1).is_ok());
    assert_eq!(admit_another(NOTICES_MAX), Err(Refusal::TooManyNotices));
}
