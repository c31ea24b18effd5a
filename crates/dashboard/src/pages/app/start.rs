//! `GET /apps/{app}/start` — a setup checklist that updates itself.

use crate::access::{LogContext, PageContext};
use crate::failure::Failure;
use crate::paging;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use std::time::Duration;
use tributary_domain::access::{AppsRead, Environment};
use tributary_domain::app::{App, AppSecret};
use tributary_domain::event::EventFilter;
use tributary_domain::forwarding::DeliveryStatus;
use tributary_domain::forwarding::delivery::DeliveryFilter;
use tributary_domain::integration::Integration;
use tributary_domain::link::LinkFilter;
use tributary_domain::vocabulary::page::{Limit, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;

#[derive(Template)]
#[template(path = "start.html")]
struct StartPage {
    shell: Shell,
    steps: Vec<Step>,
    done: usize,
    ios_is_strict: bool,
    trials_twice: bool,
}

struct Step {
    title: &'static str,
    text: &'static str,
    is_done: bool,
    href: String,
    action: &'static str,
}

const ONE: fn() -> PageRequest = || PageRequest {
    limit: Limit::parse("1").unwrap_or(Limit::DEFAULT),
    before: None,
};

/// How far back to look for a first click.
const CLICK_LOOKBACK: Duration = Duration::from_hours(365 * 24);

/// Which setup steps are done.
struct SetupProgress {
    link: bool,
    click: bool,
    sdk: bool,
    billing: bool,
    network: bool,
    delivery: bool,
}

async fn load_progress(
    handles: &DashboardHandles,
    context: &PageContext<AppsRead>,
    app: &App,
) -> Result<SetupProgress, Failure> {
    let (caller, store) = (&context.authorized, &handles.store);
    let now = handles.runtime.now();
    let links = store
        .links(caller, app.id, LinkFilter::default(), ONE())
        .await?;
    let live = context.session.authorize(Environment::Live)?;
    let back = i64::try_from(CLICK_LOOKBACK.as_millis()).unwrap_or(0);
    let year_ago = Timestamp::from_millis(now.as_millis() - back);
    // Includes the current quarter of an hour.
    let until = now.plus(Duration::from_mins(15));
    let figures = store
        .figures_by_network(&live, app.id, (year_ago, until))
        .await?;
    let mut sdk = false;
    for environment in [Environment::Live, Environment::Test] {
        let caller = context.session.authorize(environment)?;
        let filter = EventFilter::default();
        let found = store.events(&caller, app.id, filter, ONE()).await?;
        sdk |= !found.items.is_empty();
    }
    let integrations = store.integrations(caller, app.id).await?;
    let delivered = DeliveryFilter {
        status: Some(DeliveryStatus::Delivered),
        ..DeliveryFilter::default()
    };
    let deliveries = store
        .deliveries(caller, app.id, delivered, paging::request(None))
        .await?;
    Ok(SetupProgress {
        link: !links.items.is_empty(),
        click: figures.iter().any(|(_, figures)| figures.clicks > 0),
        sdk,
        billing: app
            .secrets
            .iter()
            .any(|secret| matches!(secret, AppSecret::Billing(_))),
        network: integrations.iter().any(Integration::is_active),
        delivery: !deliveries.items.is_empty(),
    })
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: LogContext<AppsRead>,
) -> Result<Response, Failure> {
    let id = context.app()?.id;
    let app = handles.store.app(&context.authorized, id).await?;
    let found = load_progress(&handles, &context, &app).await?;
    let step = |title, text, is_done, page: &str, action| Step {
        title,
        text,
        is_done,
        href: format!("/apps/{id}/{page}"),
        action,
    };
    let steps = vec![
        step(
            "Create a link",
            "Use its URL in an ad. It records each click and redirects to the store or your page.",
            found.link,
            "links/new",
            "Create a link",
        ),
        step(
            "Record a first click",
            "Open the link yourself, ideally on a phone. Bots and link previews do not count.",
            found.click,
            "links",
            "View links",
        ),
        step(
            "Receive a first event",
            "Add the SDK with the app's key and open the app once. Start with the test key.",
            found.sdk,
            "settings",
            "Keys and snippets",
        ),
        step(
            "Connect a billing provider",
            "Purchases and renewals then arrive from the provider's server, without code in the \
             app. Without a provider, revenue reported by the SDK counts.",
            found.billing,
            "integrations",
            "Billing",
        ),
        step(
            "Connect an ad network",
            "Enter your credentials for Meta, Google Ads, TikTok or OpenAI Ads, send a test event, \
             and switch forwarding on. Earlier events are not sent.",
            found.network,
            "integrations",
            "Integrations",
        ),
        step(
            "Deliver a first event",
            "Events credited to a connected network are sent to it. The event's page shows the \
             response.",
            found.delivery,
            "deliveries",
            "Deliveries",
        ),
    ];
    let page = StartPage {
        shell: context.shell(Section::Start),
        done: steps.iter().filter(|step| step.is_done).count(),
        steps,
        ios_is_strict: !app.attribution.probabilistic_ios,
        trials_twice: app.qualified_trial.enabled,
    };
    Ok(context.page(&page))
}
