//! `/apps/{app}/deliveries` — the delivery log, with retry.

use crate::access::{FormSubmission, LogContext};
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::pages::events::detail::DeliveryCard;
use crate::pages::events::filter::{last_day, read};
use crate::pages::events::reason_label;
use crate::query::UrlQuery;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::{paging, text};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::{AppsRead, AppsWrite};
use tributary_domain::event::name::canonical;
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::delivery::DeliveryFilter;
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::calendar::day_bounds;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::id::DeliveryId;
use tributary_domain::vocabulary::text::{check_external_id, parse_event_name};
use tributary_domain::vocabulary::timezone::Timezone;

/// Query parameters of the filter.
const FIELDS: [&str; 7] = [
    "name", "network", "status", "reason", "eventId", "from", "to",
];
/// Maximum length of a reason. The codes of networks are much shorter.
const REASON_CHARS_MAX: usize = 200;

#[derive(Template)]
#[template(path = "deliveries.html")]
struct DeliveriesPage {
    shell: Shell,
    form: FormState,
    rows: Vec<Row>,
    older: Option<String>,
    /// The filter's query string, for “Retry all matching”.
    query: String,
    can_retry_all: bool,
    is_filtered: bool,
}

struct Row {
    card: DeliveryCard,
    event: String,
    at: String,
    datetime: String,
}

impl DeliveriesPage {
    fn statuses(&self) -> Vec<(&'static str, &'static str)> {
        let all = DeliveryStatus::ALL
            .iter()
            .map(|one| (one.as_str(), one.as_str()));
        std::iter::once(("", "Any")).chain(all).collect()
    }

    /// Returns the label of the reason in the filter, and the URL of the list without it.
    fn reason(&self) -> Option<(String, String)> {
        let reason = Some(self.form.value("reason")).filter(|reason| !reason.is_empty())?;
        let rest = UrlQuery::of(Some(&self.query)).with(&[("reason", None)]);
        Some((reason_label(reason).to_owned(), format!("?{rest}")))
    }

    fn networks(&self) -> Vec<(&'static str, &'static str)> {
        let all = Network::ALL
            .into_iter()
            .map(|one| (one.as_str(), one.name()));
        std::iter::once(("", "Any")).chain(all).collect()
    }
}

/// Reads the filter and its form. The days are days in the app's time zone.
fn filter(query: &UrlQuery, zone: &Timezone) -> (DeliveryFilter, FormState) {
    let mut faults = Faults::new();
    let unknown = || Problem::new(FaultCode::UnknownValue, "Choose one of the list.");
    let from = read(query, "from", &mut faults, Day::parse);
    let to = read(query, "to", &mut faults, |text| last_day(text, from));
    let (from, until) = day_bounds(from, to, zone);
    let filter = DeliveryFilter {
        status: read(query, "status", &mut faults, |text| {
            DeliveryStatus::parse(text).ok_or_else(unknown)
        }),
        network: read(query, "network", &mut faults, |text| {
            Network::parse(text).ok_or_else(unknown)
        }),
        event_name: read(query, "name", &mut faults, |text| {
            parse_event_name(text).map(|name| canonical(&name).0)
        }),
        reason: read(query, "reason", &mut faults, |reason| {
            let is_short = reason.chars().count() <= REASON_CHARS_MAX;
            is_short.then(|| reason.to_owned()).ok_or_else(unknown)
        }),
        external_id: read(query, "eventId", &mut faults, |id| {
            check_external_id(id).map(str::to_owned)
        }),
        from,
        until,
    };
    let value = |name: &str| query.get(name).unwrap_or_default();
    let form = FIELDS.iter().fold(FormState::default(), |form, name| {
        form.with(name, value(name))
    });
    (filter, form.with_faults(faults))
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: LogContext<AppsRead>,
) -> Result<Response, Failure> {
    let app = context.app()?;
    let (filter, form) = filter(&context.query, &app.timezone);
    let is_valid = form.faults().is_empty();
    let before = context.query.get("before");
    let before = before.and_then(|text| DeliveryId::parse(text).ok());
    let request = paging::request(before.map(|id| *id.as_bytes()));
    let can_retry_all = is_valid && filter.status.is_some_and(DeliveryStatus::can_be_retried);
    let caller = &context.authorized;
    let is_filtered = filter != DeliveryFilter::default();
    let found = handles
        .store
        .deliveries(caller, app.id, filter, request)
        .await?;
    let last = found.items.last().map(|one| one.delivery.id.to_string());
    let older = paging::older(&context.query, found.has_more && is_valid, last);
    let now = handles.runtime.now();
    let row = |one: tributary_store::DeliveryWithEvent| Row {
        at: text::moment(one.delivery.event.at(), &app.timezone),
        datetime: text::rfc3339(one.delivery.event.at()),
        event: one
            .event
            .map_or_else(|| "deleted event".to_owned(), |event| event.name),
        card: DeliveryCard::of(one.delivery, &app.timezone, now),
    };
    let page = DeliveriesPage {
        shell: context.shell(Section::Deliveries),
        form,
        // A filter with a fault matches nothing, instead of everything.
        rows: found
            .items
            .into_iter()
            .filter(|_| is_valid)
            .map(row)
            .collect(),
        older,
        query: context.query.with(&[("before", None)]),
        can_retry_all,
        is_filtered: is_filtered || !is_valid,
    };
    Ok(context.page(&page))
}

/// `POST /apps/{app}/deliveries/{delivery}/retry` — queues a delivery again.
pub(crate) async fn retry(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let (app, origin) = (submission.app()?.id, submission.origin(&handles));
    let id =
        DeliveryId::parse(submission.path_parameter("delivery")).map_err(|_| Failure::NotFound)?;
    let caller = &submission.authorized;
    let retried = handles
        .store
        .retry_delivery(caller, app, id, origin)
        .await?;
    let event = retried.delivery.event;
    submission.redirect(format_args!("events/{event}"), "retried")
}

/// `POST /apps/{app}/deliveries/retry` — queues all deliveries that match the filter again.
pub(crate) async fn retry_many(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let (zone, origin) = (&submission.app()?.timezone, submission.origin(&handles));
    let (filter, form) = filter(&submission.query, zone);
    let (app, caller) = (submission.app()?.id, &submission.authorized);
    let brought = if form.faults().is_empty() {
        let retried = handles.store.retry_deliveries(caller, app, filter, origin);
        retried.await?
    } else {
        0
    };
    let notice = if brought > 0 { "retried" } else { "unchanged" };
    submission.redirect("deliveries", notice)
}
