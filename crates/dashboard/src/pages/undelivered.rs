//! `GET /apps/{app}/undelivered` — what was not delivered to a network, and why.

use crate::access::ReportContext;
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::network_label::NetworkLabel;
use crate::pages::events::{
    Explanation, reason_explanation, reason_label, skip_explanation, skip_label, tone,
};
use crate::query::UrlQuery;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::text;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use std::collections::BTreeSet;
use tributary_domain::access::AppsRead;
use tributary_domain::forwarding::undelivered::{
    UndeliveredGroup, UndeliveredQuery, UndeliveredReason,
};
use tributary_domain::integration::Network;
use tributary_domain::report::range::days_before;
use tributary_domain::vocabulary::calendar::{day_bounds, today};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// Choices for the period: days up to today, and label.
const PERIODS: [(&str, &str); 3] = [("1", "Today"), ("7", "Last 7 days"), ("30", "Last 30 days")];
/// Days of the default period.
const DEFAULT_DAYS: &str = "7";
/// Groups per page: as many as a person looks through.
const GROUPS_PER_PAGE: usize = 20;
/// Event names shown for a group: the most frequent ones. A filter shows the others.
const EVENTS_SHOWN_MAX: usize = 10;
/// With at most this many groups, their events are shown at once.
const OPEN_GROUPS_MAX: usize = 3;

#[derive(Template)]
#[template(path = "undelivered.html")]
struct UndeliveredPage {
    shell: Shell,
    form: FormState,
    names: Vec<String>,
    /// Events that the network should have received.
    lost: Part,
    /// Events that were not meant for the network.
    intended: Part,
    /// Moment from which on all events are counted, if earlier ones of the period are missing.
    complete_since: Option<String>,
}

/// One page of a list of groups.
struct Part {
    /// Number of events of all pages.
    count: String,
    groups: Vec<Group>,
    /// Queries for the neighbouring pages.
    previous: Option<String>,
    next: Option<String>,
}

/// Events that a network did not receive for one reason.
struct Group {
    network: NetworkLabel,
    /// Status of the deliveries and its colour. `None` if no delivery was planned.
    status: Option<(&'static str, &'static str)>,
    label: String,
    explanation: Explanation,
    count: String,
    is_open: bool,
    events: Vec<EventRow>,
    /// Number of further event names.
    more_events: usize,
}

struct EventRow {
    name: String,
    count: String,
    /// URL of the events or deliveries.
    href: String,
}

impl UndeliveredPage {
    fn networks(&self) -> Vec<(&'static str, &'static str)> {
        let all = Network::ALL
            .into_iter()
            .map(|one| (one.as_str(), one.name()));
        std::iter::once(("", "Any")).chain(all).collect()
    }

    fn events(&self) -> Vec<(&str, &str)> {
        let all = self.names.iter().map(|name| (name.as_str(), name.as_str()));
        std::iter::once(("", "Any")).chain(all).collect()
    }

    const fn periods(&self) -> [(&'static str, &'static str); 3] {
        PERIODS
    }
}

fn count_text(count: u64) -> String {
    text::count(i64::try_from(count).unwrap_or(i64::MAX))
}

impl Group {
    fn of(app: AppId, group: &UndeliveredGroup, from: &str, is_open: bool) -> Self {
        let (status, label, explanation) = match &group.reason {
            UndeliveredReason::Skipped(skip) => {
                let label = skip_label(*skip).to_owned();
                (None, label, skip_explanation(*skip))
            }
            UndeliveredReason::Ended(status, reason) => {
                let reason = reason.as_deref();
                let label = reason.map_or("No code", reason_label).to_owned();
                let status_and_tone = Some((status.as_str(), tone(*status)));
                (status_and_tone, label, reason_explanation(*status, reason))
            }
        };
        let events = group.events.iter().take(EVENTS_SHOWN_MAX);
        Self {
            network: NetworkLabel::of(group.network),
            status,
            label,
            explanation,
            count: count_text(group.count),
            is_open,
            events: events
                .map(|(name, count)| EventRow {
                    name: name.clone().unwrap_or_else(|| "deleted event".to_owned()),
                    count: count_text(*count),
                    href: href(app, group, name.as_deref(), from),
                })
                .collect(),
            more_events: group.events.len().saturating_sub(EVENTS_SHOWN_MAX),
        }
    }
}

/// Returns the URL of the events or deliveries of a group with a name.
fn href(app: AppId, group: &UndeliveredGroup, name: Option<&str>, from: &str) -> String {
    let network = Some(group.network.as_str());
    let (page, query) = match &group.reason {
        UndeliveredReason::Skipped(skip) => {
            let query = [
                ("name", name),
                ("notSentTo", network),
                ("reason", Some(skip.as_str())),
                ("from", Some(from)),
            ];
            ("events", UrlQuery::default().with(&query))
        }
        UndeliveredReason::Ended(status, reason) => {
            let query = [
                ("name", name),
                ("network", network),
                ("status", Some(status.as_str())),
                ("reason", reason.as_deref()),
                ("from", Some(from)),
            ];
            ("deliveries", UrlQuery::default().with(&query))
        }
    };
    format!("/apps/{app}/{page}?{query}")
}

/// Returns one page of the groups. `parameter` is the name of the page number in the URL.
fn part(
    app: AppId,
    groups: &[&UndeliveredGroup],
    (query, parameter): (&UrlQuery, &'static str),
    from: &str,
) -> Part {
    let pages = groups.len().div_ceil(GROUPS_PER_PAGE).max(1);
    let page = query.get(parameter).and_then(|page| page.parse().ok());
    let page: usize = page.unwrap_or(1).clamp(1, pages);
    let shown = groups.iter().skip((page - 1) * GROUPS_PER_PAGE);
    let is_open = groups.len() <= OPEN_GROUPS_MAX;
    let link = |page: usize| query.with(&[(parameter, Some(&page.to_string()))]);
    Part {
        count: count_text(groups.iter().map(|group| group.count).sum()),
        groups: shown
            .take(GROUPS_PER_PAGE)
            .map(|group| Group::of(app, group, from, is_open))
            .collect(),
        previous: (page > 1).then(|| link(page - 1)),
        next: (page < pages).then(|| link(page + 1)),
    }
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: ReportContext<AppsRead>,
) -> Result<Response, Failure> {
    let app = context.app()?;
    let wanted = context.query.get("days").unwrap_or(DEFAULT_DAYS);
    let is_choice = PERIODS.iter().any(|(days, _)| *days == wanted);
    let days = if is_choice { wanted } else { DEFAULT_DAYS };
    let ago = days.parse::<i32>().map_or(0, |days| days - 1);
    let first = days_before(today(handles.runtime.now(), &app.timezone), ago);
    let (since, _) = day_bounds(Some(first), None, &app.timezone);
    let value = |name: &str| context.query.get(name).filter(|value| !value.is_empty());
    let query = UndeliveredQuery {
        since: since.unwrap_or(Timestamp::from_millis(0)),
        network: value("network").and_then(Network::parse),
        event: value("event").map(str::to_owned),
    };
    let counts = handles
        .store
        .undelivered(&context.authorized, app.id, query)
        .await?;
    let groups = counts.groups();
    let names = groups.iter().flat_map(|group| &group.events);
    let names = names.filter_map(|(name, _)| name.as_deref());
    let names: BTreeSet<&str> = names.chain(value("event")).collect();
    let (lost, intended): (Vec<_>, Vec<_>) = groups
        .iter()
        .partition(|group| group.reason.loses_conversion());
    let part = |groups: &[&UndeliveredGroup], parameter| {
        part(
            app.id,
            groups,
            (&context.query, parameter),
            &first.to_string(),
        )
    };
    let page = UndeliveredPage {
        shell: context.shell(Section::Deliveries),
        form: FormState::default()
            .with("network", value("network").unwrap_or_default())
            .with("event", value("event").unwrap_or_default())
            .with("days", days),
        names: names.into_iter().map(str::to_owned).collect(),
        lost: part(&lost, "page"),
        intended: part(&intended, "otherPage"),
        complete_since: counts
            .complete_since()
            .map(|since| text::moment(since, &app.timezone)),
    };
    Ok(context.page(&page))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_domain::forwarding::undelivered::{UndeliveredCounts, UndeliveredEvents};
    use tributary_domain::forwarding::{DeliveryStatus, SkipReason};

    const APP: AppId = AppId::from_bytes([1; 16]);

    fn groups() -> Vec<UndeliveredGroup> {
        let mut counts = UndeliveredCounts::default();
        counts.add_skipped(
            "purchase",
            &[(Network::C, SkipReason::IntegrationDisabled)],
            24,
        );
        let failed = UndeliveredEvents {
            network: Network::C,
            event: Some("sign_up".to_owned()),
            reason: UndeliveredReason::Ended(DeliveryStatus::Failed, Some("40002".to_owned())),
        };
        counts.add(failed, 3);
        counts.groups()
    }

    fn page(groups: &[UndeliveredGroup], query: &str) -> Part {
        let query = UrlQuery::of(Some(query));
        let groups: Vec<_> = groups.iter().collect();
        part(APP, &groups, (&query, "page"), "2026-11-12")
    }

    #[test]
    fn a_group_names_network_and_reason_and_lists_its_events() {
        let part = page(&groups(), "");
        assert_eq!(part.count, "27");
        let first = &part.groups[0];
        let texts = (
            first.network.name,
            first.label.as_str(),
            first.count.as_str(),
        );
        assert_eq!(texts, ("TikTok", "Integration was off", "24"));
        assert!(first.is_open, "there are only two groups");
        let events = format!(
            "/apps/{APP}/events?name=purchase&notSentTo=network_c&reason=integration_disabled\
             &from=2026-11-12"
        );
        assert_eq!(first.events[0].href, events);
        let second = &part.groups[1];
        assert_eq!(second.status, Some(("failed", "bad")));
        let deliveries = format!(
            "/apps/{APP}/deliveries?name=sign_up&network=network_c&status=failed&reason=40002\
             &from=2026-11-12"
        );
        assert_eq!(second.events[0].href, deliveries);
    }

    #[test]
    fn groups_are_paged_and_rare_events_are_left_to_the_filter() {
        let mut counts = UndeliveredCounts::default();
        for number in 0..45_u64 {
            for name in 0..12 {
                let events = UndeliveredEvents {
                    network: Network::C,
                    event: Some(format!("event_{name}")),
                    reason: UndeliveredReason::Ended(
                        DeliveryStatus::Failed,
                        Some(format!("{number}")),
                    ),
                };
                counts.add(events, 100 - number);
            }
        }
        let groups = counts.groups();
        for (query, shown, previous, next) in [
            ("days=1", 20, None, Some("days=1&page=2")),
            ("page=2", 20, Some("page=1"), Some("page=3")),
            ("page=3", 5, Some("page=2"), None),
            ("page=99", 5, Some("page=2"), None),
            ("page=x", 20, None, Some("page=2")),
        ] {
            let part = page(&groups, query);
            assert_eq!(part.groups.len(), shown, "{query}");
            assert_eq!(part.previous.as_deref(), previous, "{query}");
            assert_eq!(part.next.as_deref(), next, "{query}");
            assert!(part.groups.iter().all(|group| !group.is_open));
            let group = &part.groups[0];
            assert_eq!((group.events.len(), group.more_events), (10, 2));
        }
    }
}
