//! `/apps/{app}/held` — flagged installs that wait for a review.

use crate::access::{FormSubmission, LogContext};
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::network_label::NetworkLabel;
use crate::pages::device::flag_label;
use crate::query::UrlQuery;
use crate::response::see_other;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::value_names::{LinkLabel, LinkNames};
use crate::{paging, text};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::resource::HeldRead;
use tributary_domain::access::{Actor, InstallsReview};
use tributary_domain::attribution::{Flag, HoldDecision, HoldFilter, HoldState, InstallHold};
use tributary_domain::device::DeviceKey;
use tributary_domain::vocabulary::calendar::{day_start, to_date, to_time_zone};
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::{AttributionId, LinkId};
use tributary_domain::vocabulary::timezone::Timezone;
use tributary_store::HeldInstall;

#[derive(Template)]
#[template(path = "held.html")]
struct HeldPage {
    shell: Shell,
    form: FormState,
    rows: Vec<Row>,
    older: Option<String>,
    /// The filter's query string, for the decisions.
    query: String,
    is_held: bool,
    /// Whether a decision about all matching installs is offered.
    can_decide_all: bool,
}

struct Row {
    device: String,
    first_seen: String,
    place: String,
    network: NetworkLabel,
    link: Option<LinkLabel>,
    reason: String,
    flags: Vec<&'static str>,
    /// Who decided when; `None` while the install is held.
    decided: Option<String>,
}

impl HeldPage {
    fn states(&self) -> Vec<(&'static str, &'static str)> {
        vec![
            ("held", "Waiting for a review"),
            ("released", "Released"),
            ("rejected", "Rejected"),
        ]
    }

    fn flags(&self) -> Vec<(&'static str, &'static str)> {
        let all = Flag::ALL
            .iter()
            .map(|flag| (flag.as_str(), flag_label(*flag)));
        std::iter::once(("", "Any")).chain(all).collect()
    }
}

fn filter(query: &UrlQuery, zone: &Timezone) -> HoldFilter {
    let state = query.get("state").and_then(HoldState::parse);
    let day = |name| query.get(name).and_then(|text| Day::parse(text).ok());
    let zone = to_time_zone(zone);
    let start = |day: Day| to_date(day).map(|date| day_start(date, &zone));
    HoldFilter {
        state: state.unwrap_or(HoldState::Held),
        flag: query.get("flag").and_then(Flag::parse),
        link: query.get("link").and_then(|text| LinkId::parse(text).ok()),
        from: day("from").and_then(start),
        until: day("to").and_then(|day| start(day.following())),
    }
}

/// Returns whether a decision about all matching installs is allowed. The filter must select some of
/// the held installs, because one click would otherwise release everything. Every criterion must be
/// valid: the list ignores an invalid one, so a misspelled link id would match all links.
fn may_decide_all(query: &UrlQuery, filter: &HoldFilter) -> bool {
    let criteria = [
        ("flag", filter.flag.is_some()),
        ("link", filter.link.is_some()),
        ("from", filter.from.is_some()),
        ("to", filter.until.is_some()),
    ];
    let is_given = |name: &str| query.get(name).is_some();
    criteria.iter().any(|(_, is_valid)| *is_valid)
        && criteria
            .iter()
            .all(|(name, is_valid)| *is_valid || !is_given(name))
}

fn decided(hold: InstallHold, zone: &Timezone) -> Option<String> {
    let review = hold.review?;
    let actor = match review.decided_by {
        Actor::Key(id) => format!("API key {id}"),
        Actor::User(id) => format!("user {id}"),
        Actor::Operator => "the command line".to_owned(),
        Actor::DeviceUser => "the device's user".to_owned(),
        Actor::Service => "the server".to_owned(),
    };
    Some(format!(
        "{} by {actor}, {}",
        hold.state.as_str(),
        text::moment(review.decided_at, zone)
    ))
}

fn row(held: HeldInstall, zone: &Timezone, names: &LinkNames) -> Row {
    let HeldInstall {
        device,
        attribution,
    } = held;
    let decision = attribution.decision;
    let platform = device.traits.platform.as_str();
    Row {
        device: device.key.as_str().to_owned(),
        first_seen: text::moment(device.first_seen_at, zone),
        place: match device.country {
            Some(country) => format!("{platform}, {country}"),
            None => platform.to_owned(),
        },
        network: NetworkLabel::credited(decision.network),
        link: decision.link.map(|link| names.label(link)),
        reason: decision.reason,
        flags: decision.flags.iter().copied().map(flag_label).collect(),
        decided: attribution.hold.and_then(|hold| decided(hold, zone)),
    }
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: LogContext<HeldRead>,
) -> Result<Response, Failure> {
    let app = context.app()?;
    let filter = filter(&context.query, &app.timezone);
    let before = context.query.get("before");
    let before = before.and_then(|text| AttributionId::parse(text).ok());
    let request = paging::request(before.map(|id| *id.as_bytes()));
    let caller = &context.authorized;
    let found = handles
        .store
        .held_installs(caller, app.id, filter, request)
        .await?;
    let last = found.items.last().map(|held| held.attribution.id);
    let last = last.map(|id| id.to_string());
    let links = found.items.iter();
    let links = links.filter_map(|held| held.attribution.decision.link);
    let reader = caller.analytics_access();
    let names = LinkNames::load(&handles, &reader, app.id, links).await?;
    let value = |name: &str| context.query.get(name).unwrap_or_default().to_owned();
    let is_held = filter.state == HoldState::Held;
    let page = HeldPage {
        shell: context.shell(Section::Held),
        form: FormState::default()
            .with("state", filter.state.as_str())
            .with("flag", value("flag"))
            .with("link", value("link"))
            .with("from", value("from"))
            .with("to", value("to")),
        older: paging::older(&context.query, found.has_more, last),
        rows: found
            .items
            .into_iter()
            .map(|held| row(held, &app.timezone, &names))
            .collect(),
        query: context.query.with(&[("before", None)]),
        is_held,
        can_decide_all: is_held && may_decide_all(&context.query, &filter),
    };
    Ok(context.page(&page))
}

/// Reads the decision from the pressed button.
fn decision<S>(submission: &FormSubmission<S>) -> Result<HoldDecision, Failure> {
    HoldDecision::parse(&submission.form.field("decision")).ok_or(Failure::NotFound)
}

fn back<S>(submission: &FormSubmission<S>, notice: &str) -> Result<Response, Failure> {
    let app = submission.app()?.id;
    let query = submission
        .query
        .with(&[("before", None), ("notice", Some(notice))]);
    Ok(see_other(&format!("/apps/{app}/held?{query}")))
}

/// `POST /apps/{app}/held/{device}/decision` — releases or rejects an install.
pub(crate) async fn decide(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<InstallsReview>,
) -> Result<Response, Failure> {
    let decision = decision(&submission)?;
    let (app, origin) = (submission.app()?.id, submission.origin(&handles));
    let device = DeviceKey::parse(submission.path_parameter("device"));
    let device = device.map_err(|_| Failure::NotFound)?;
    let caller = &submission.authorized;
    let reviewed = handles
        .store
        .review_install(caller, app, device, decision, origin);
    reviewed.await?;
    back(&submission, decision.state().as_str())
}

/// `POST /apps/{app}/held/decisions` — releases or rejects the installs that match the filter.
pub(crate) async fn decide_many(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<InstallsReview>,
) -> Result<Response, Failure> {
    let decision = decision(&submission)?;
    let app = submission.app()?;
    let filter = filter(&submission.query, &app.timezone);
    if !may_decide_all(&submission.query, &filter) {
        return back(&submission, "unchanged");
    }
    let (caller, origin) = (&submission.authorized, submission.origin(&handles));
    let reviewed = handles
        .store
        .review_installs(caller, app.id, filter, decision, origin);
    let count = reviewed.await?;
    let notice = match (count.decided, count.has_more) {
        (0, _) => "unchanged",
        (_, true) => "more",
        (_, false) => decision.state().as_str(),
    };
    back(&submission, notice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::everything("", false)]
    #[case::only_the_state("state=held&flag=&from=", false)]
    #[case::flag("flag=short_ctit", true)]
    #[case::days("from=2026-01-01&to=2026-01-31", true)]
    #[case::misspelled_link("flag=short_ctit&link=lnk_x", false)]
    #[case::not_a_day("flag=short_ctit&to=tomorrow", false)]
    #[case::unknown_flag("flag=odd&from=2026-01-01", false)]
    fn all_installs_are_decided_only_by_a_valid_filter(
        #[case] query: &str,
        #[case] expected: bool,
    ) {
        let query = UrlQuery::of(Some(query));
        let filter = filter(&query, &Timezone::UTC);
        assert_eq!(may_decide_all(&query, &filter), expected);
    }
}
