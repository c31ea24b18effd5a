//! `/apps/{app}/deliveries` — the delivery log of the networks, and trying again.

use crate::access::{FormSubmission, PageContext};
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::pages::events::detail::DeliveryCard;
use crate::query::UrlQuery;
use crate::response::see_other;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::{paging, text};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::{AppsRead, AppsWrite};
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::delivery::DeliveryFilter;
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::id::DeliveryId;
use tributary_domain::vocabulary::text::check_external_id;

#[derive(Template)]
#[template(path = "deliveries.html")]
struct DeliveriesPage {
    shell: Shell,
    form: FormState,
    rows: Vec<Row>,
    older: Option<String>,
    /// The query of the filter, for trying all of them again.
    query: String,
    can_retry_all: bool,
}

struct Row {
    card: DeliveryCard,
    event: String,
    at: String,
}

impl DeliveriesPage {
    fn statuses(&self) -> Vec<(&'static str, &'static str)> {
        let all = DeliveryStatus::ALL
            .iter()
            .map(|one| (one.as_str(), one.as_str()));
        std::iter::once(("", "any")).chain(all).collect()
    }

    fn networks(&self) -> Vec<(&'static str, &'static str)> {
        let all = Network::ALL
            .into_iter()
            .map(|one| (one.as_str(), one.as_str()));
        std::iter::once(("", "any")).chain(all).collect()
    }
}

fn filter(query: &UrlQuery) -> DeliveryFilter {
    let event = query
        .get("eventId")
        .and_then(|id| check_external_id(id).ok());
    DeliveryFilter {
        status: query.get("status").and_then(DeliveryStatus::parse),
        network: query.get("network").and_then(Network::parse),
        external_id: event.map(str::to_owned),
        ..DeliveryFilter::default()
    }
}

/// The page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    reader: PageContext<AppsRead>,
) -> Result<Response, Failure> {
    let app = reader.app()?;
    let filter = filter(&reader.query);
    let before = reader.query.get("before");
    let before = before.and_then(|text| DeliveryId::parse(text).ok());
    let request = paging::request(before.map(|id| *id.as_bytes()));
    let can_retry_all = filter.status.is_some_and(DeliveryStatus::can_be_retried);
    let caller = &reader.authorized;
    let found = handles
        .store
        .deliveries(caller, app.id, filter, request)
        .await?;
    let last = found.items.last().map(|one| one.delivery.id.to_string());
    let older = paging::older(&reader.query, found.has_more, last);
    let now = handles.source.now();
    let row = |one: tributary_store::DeliveryWithEvent| Row {
        at: text::moment(one.delivery.event.at(), &app.timezone),
        event: one
            .event
            .map_or_else(|| "gone".to_owned(), |event| event.name),
        card: DeliveryCard::of(one.delivery, &app.timezone, now),
    };
    let value = |name: &str| reader.query.get(name).unwrap_or_default().to_owned();
    let page = DeliveriesPage {
        shell: reader.shell(Section::Deliveries),
        form: FormState::default()
            .with("status", value("status"))
            .with("network", value("network"))
            .with("eventId", value("eventId")),
        rows: found.items.into_iter().map(row).collect(),
        older,
        query: reader.query.with(&[("before", None)]),
        can_retry_all,
    };
    Ok(reader.page(&page))
}

/// `POST /apps/{app}/deliveries/{delivery}/retry` — brings one back into its queue.
pub(crate) async fn retry(
    State(handles): State<DashboardHandles>,
    posted: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let (app, origin) = (posted.app()?.id, posted.origin(&handles));
    let id = DeliveryId::parse(posted.path_parameter("delivery")).map_err(|_| Failure::NotFound)?;
    let caller = &posted.authorized;
    let retried = handles
        .store
        .retry_delivery(caller, app, id, origin)
        .await?;
    let event = retried.delivery.event;
    Ok(see_other(&format!(
        "/apps/{app}/events/{event}?notice=retried"
    )))
}

/// `POST /apps/{app}/deliveries/retry` — brings back those that fit the filter.
pub(crate) async fn retry_many(
    State(handles): State<DashboardHandles>,
    posted: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let (app, origin) = (posted.app()?.id, posted.origin(&handles));
    let filter = filter(&posted.query);
    let caller = &posted.authorized;
    let brought = handles
        .store
        .retry_deliveries(caller, app, filter, origin)
        .await?;
    let notice = if brought > 0 { "retried" } else { "unchanged" };
    Ok(see_other(&format!(
        "/apps/{app}/deliveries?notice={notice}"
    )))
}
