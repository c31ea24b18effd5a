//! `GET /apps/{app}/start` — a checklist that turns green by itself.

use crate::access::PageContext;
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
    words: &'static str,
    is_done: bool,
    href: String,
    action: &'static str,
}

const ONE: fn() -> PageRequest = || PageRequest {
    limit: Limit::parse("1").unwrap_or(Limit::DEFAULT),
    before: None,
};

/// How far back clicks are looked for: roll-ups stay, so as far as anybody needs.
const CLICK_LOOKBACK: Duration = Duration::from_hours(365 * 24);

/// What is there already.
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
    reader: &PageContext<AppsRead>,
    app: &App,
) -> Result<SetupProgress, Failure> {
    let (caller, store) = (&reader.authorized, &handles.store);
    let now = handles.source.now();
    let links = store.links(caller, app.id, ONE()).await?;
    let live = reader.session.authorize(Environment::Live)?;
    let back = i64::try_from(CLICK_LOOKBACK.as_millis()).unwrap_or(0);
    let year_ago = Timestamp::from_millis(now.as_millis() - back);
    // The quarter of an hour that it is now is read too.
    let until = now.plus(Duration::from_mins(15));
    let figures = store
        .figures_by_network(&live, app.id, (year_ago, until))
        .await?;
    let mut sdk = false;
    for environment in [Environment::Live, Environment::Test] {
        let caller = reader.session.authorize(environment)?;
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

/// The page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    reader: PageContext<AppsRead>,
) -> Result<Response, Failure> {
    let id = reader.app()?.id;
    let app = handles.store.app(&reader.authorized, id).await?;
    let found = load_progress(&handles, &reader, &app).await?;
    let step = |title, words, is_done, page: &str, action| Step {
        title,
        words,
        is_done,
        href: format!("/apps/{id}/{page}"),
        action,
    };
    let steps = vec![
        step(
            "Make a link",
            "The address to put into an ad. It counts the tap and leads on to the store or to your page.",
            found.link,
            "links/new",
            "Make a link",
        ),
        step(
            "See a first click",
            "Open the link yourself, best on a phone. Bots and link previews are recorded and do not count.",
            found.click,
            "links",
            "Open the links",
        ),
        step(
            "Hear from the SDK",
            "Add the SDK with the app's key and open the app once. Try it with the test key first.",
            found.sdk,
            "settings",
            "Keys and snippets",
        ),
        step(
            "Join a billing provider",
            "Purchases and renewals then come from the server and need no code in the app. Without one, money that the \
             SDK reports counts.",
            found.billing,
            "integrations",
            "Billing",
        ),
        step(
            "Connect a network",
            "Give its credentials, send a test event, and switch it on. What happened before is not sent.",
            found.network,
            "integrations",
            "Integrations",
        ),
        step(
            "See a first delivery",
            "An event that is attributed to a connected network arrives there, and its page shows the network's answer.",
            found.delivery,
            "deliveries",
            "Deliveries",
        ),
    ];
    let page = StartPage {
        shell: reader.shell(Section::Start),
        done: steps.iter().filter(|step| step.is_done).count(),
        steps,
        ios_is_strict: !app.attribution.probabilistic_ios,
        trials_twice: app.qualified_trial.enabled,
    };
    Ok(reader.page(&page))
}
