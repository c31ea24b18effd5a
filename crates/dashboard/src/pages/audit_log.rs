//! `/audit-log` — all changes with actor, time and client address.

use crate::access::LogContext;
use crate::failure::Failure;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::{paging, text};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use std::collections::BTreeMap;
use tributary_domain::access::Actor;
use tributary_domain::access::resource::OrganizationRead;
use tributary_domain::audit::{AuditEntry, FieldChange};
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::id::{AppId, AuditId};
use tributary_domain::vocabulary::timezone::Timezone;
use tributary_store::AppName;

#[derive(Template)]
#[template(path = "audit_log.html")]
struct AuditLogPage {
    shell: Shell,
    /// Name of the time zone.
    zone: String,
    app: Option<String>,
    lines: Vec<Line>,
    older: Option<String>,
}

struct Line {
    /// Sequence number in the organization's chain.
    sequence: Option<u64>,
    at: String,
    actor: String,
    /// The action in words, and its code.
    action: String,
    code: &'static str,
    app: Option<String>,
    /// Affected object; `None` if it is the app itself.
    target: Option<String>,
    changes: Vec<FieldChange>,
    address: String,
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: LogContext<OrganizationRead>,
) -> Result<Response, Failure> {
    let app = context.query.get("app");
    let app = app.and_then(|text| AppId::parse(text).ok());
    let before = context.query.get("before");
    let before = before.and_then(|text| AuditId::parse(text).ok());
    let request = paging::request(before.map(|id| *id.as_bytes()));
    let found = handles
        .store
        .audit_log(&context.authorized, app, request)
        .await?;
    let members = handles.store.members(&context.authorized).await?;
    let keys = handles
        .store
        .keys(context.authorized.organization())
        .await?;
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for user in members {
        names.insert(user.id.to_string(), user.email.as_str().to_owned());
    }
    for key in keys {
        let name = format!("key “{}” (…{})", key.name, key.hint);
        names.insert(key.id.to_string(), name);
    }
    for network in Network::ALL {
        let name = network.name().to_owned();
        names.insert(network.as_str().to_owned(), name);
    }
    for app in context.apps() {
        names.insert(app.id.to_string(), app.name.as_str().to_owned());
    }
    let zone = zone_of(context.apps(), app);
    let last = found.items.last().map(|entry| entry.id.to_string());
    let older = paging::older(&context.query, found.has_more, last);
    let page = AuditLogPage {
        shell: context.shell(Section::AuditLog),
        zone: zone.map_or("UTC", Timezone::as_str).to_owned(),
        app: app.and_then(|app| names.get(&app.to_string()).cloned()),
        lines: found
            .items
            .into_iter()
            .map(|entry| line(entry, &names, zone))
            .collect(),
        older,
    };
    Ok(context.page(&page))
}

/// Returns an action's code in words: `cost_source.updated` is “Cost source updated”.
fn action_label(code: &str) -> String {
    let words = code.replace(['.', '_'], " ");
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// Returns the time zone of the entries: that of the shown app, or of all apps if they have the same.
fn zone_of(apps: &[AppName], app: Option<AppId>) -> Option<&Timezone> {
    let mut apps = apps.iter().filter(|one| app.is_none_or(|id| id == one.id));
    let first = &apps.next()?.timezone;
    apps.all(|one| one.timezone == *first).then_some(first)
}

fn line(entry: AuditEntry, names: &BTreeMap<String, String>, zone: Option<&Timezone>) -> Line {
    let named = |id: String| names.get(&id).cloned().unwrap_or(id);
    let app = entry.app.map(|app| app.to_string());
    let target = Some(entry.target).filter(|target| Some(target) != app.as_ref());
    Line {
        sequence: entry.sequence,
        at: zone.map_or_else(
            || text::moment_utc(entry.at),
            |zone| text::moment(entry.at, zone),
        ),
        actor: match entry.actor {
            Actor::Key(id) => named(id.to_string()),
            Actor::User(id) => named(id.to_string()),
            Actor::Operator => "command line".to_owned(),
            Actor::DeviceUser => "the device's user".to_owned(),
            Actor::Service => "server".to_owned(),
        },
        action: action_label(entry.action.as_str()),
        code: entry.action.as_str(),
        app: app.map(named),
        target: target.map(named),
        changes: entry.changes,
        address: entry.address.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use tributary_domain::access::Environment;
    use tributary_domain::audit::Action;
    use tributary_domain::vocabulary::id::OrganizationId;
    use tributary_domain::vocabulary::time::Timestamp;

    const APP: AppId = AppId::from_bytes([1; 16]);

    #[rstest]
    #[case("notice.created", "Notice created")]
    #[case("cost_source.updated", "Cost source updated")]
    fn an_action_is_shown_in_words(#[case] code: &str, #[case] expected: &str) {
        assert_eq!(action_label(code), expected);
    }

    #[test]
    fn times_are_in_a_zone_that_all_shown_apps_share() {
        let app = |id: u8, zone: &str| AppName {
            id: AppId::from_bytes([id; 16]),
            name: tributary_domain::vocabulary::text::Name::parse("Runner").unwrap(),
            timezone: Timezone::parse(zone).unwrap(),
            archived: false,
        };
        let zone = |apps: &[AppName], app| zone_of(apps, app).map(|zone| zone.as_str().to_owned());
        let apps = [app(1, "Europe/Berlin"), app(2, "Asia/Tokyo")];
        assert_eq!(zone(&apps, None), None);
        assert_eq!(zone(&apps, Some(APP)).as_deref(), Some("Europe/Berlin"));
        assert_eq!(zone(&apps[1..], None).as_deref(), Some("Asia/Tokyo"));
        assert_eq!(zone(&[], None), None);
    }

    #[rstest]
    #[case::the_app_itself(APP.to_string(), None)]
    #[case::a_link("lnk_1".to_owned(), Some("lnk_1"))]
    fn an_app_is_named_once(#[case] target: String, #[case] expected: Option<&str>) {
        let entry = AuditEntry {
            id: AuditId::from_bytes([2; 16]),
            organization: OrganizationId::from_bytes([3; 16]),
            sequence: Some(7),
            at: Timestamp::from_millis(0),
            actor: Actor::Operator,
            action: Action::AppUpdated,
            app: Some(APP),
            target,
            changes: Vec::new(),
            address: None,
            request_id: None,
            environment: Environment::Live,
        };
        let names = BTreeMap::from([(APP.to_string(), "Runner".to_owned())]);
        let shown = line(entry, &names, None);
        assert_eq!(shown.app.as_deref(), Some("Runner"));
        assert_eq!(shown.target.as_deref(), expected);
        assert_eq!(shown.sequence, Some(7));
    }
}
