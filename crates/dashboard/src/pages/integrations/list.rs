//! `GET /apps/{app}/integrations` — one card per ad network and billing provider.

use super::StatusLabel;
use super::billing::{BillingCard, DAYS, NewBillingSecret};
use crate::access::{PageContext, ReportContext};
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::shell::{Section, Shell};
use crate::state::DashboardHandles;
use crate::text;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use tributary_domain::access::{AppsRead, Authorized};
use tributary_domain::integration::Integration;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::IntegrationHealth;

#[derive(Template)]
#[template(path = "integrations.html")]
pub(super) struct IntegrationsPage {
    shell: Shell,
    cards: Vec<Card>,
    billing: Vec<BillingCard>,
    form: FormState,
    /// A new secret, shown once.
    new_secret: Option<NewBillingSecret>,
}

impl IntegrationsPage {
    /// Adds a new secret to the page.
    pub(super) fn with_secret(self, secret: NewBillingSecret) -> Self {
        Self {
            new_secret: Some(secret),
            ..self
        }
    }

    const fn days(&self) -> i32 {
        DAYS
    }
}

struct Card {
    network: &'static str,
    name: &'static str,
    status: StatusLabel,
    pending: String,
    delivered: String,
    failed: String,
    last: String,
    rows: usize,
}

impl Card {
    fn of(integration: &Integration, health: &IntegrationHealth, now: Timestamp) -> Self {
        let number = |count: u64| text::count(i64::try_from(count).unwrap_or(i64::MAX));
        Self {
            network: integration.network.as_str(),
            name: integration.network.name(),
            status: StatusLabel::of(integration, &health.state),
            pending: number(health.pending),
            delivered: number(health.delivered),
            failed: number(health.failed),
            last: health
                .state
                .last_delivered_at
                .map_or_else(|| "never".to_owned(), |at| text::ago(at, now)),
            rows: integration
                .mapping()
                .iter()
                .filter(|row| row.enabled)
                .count(),
        }
    }
}

/// Loads the page. `form` contains the errors in a submitted billing secret.
pub(super) async fn page(
    handles: &DashboardHandles,
    context: &PageContext<impl Send>,
    caller: &Authorized<AppsRead>,
    form: FormState,
) -> Result<IntegrationsPage, Failure> {
    let id = context.app()?.id;
    let now = handles.runtime.now();
    let app = handles.store.app(caller, id).await?;
    let integrations = handles.store.integrations(caller, id).await?;
    let health = handles.store.integration_health(caller, id, now).await?;
    let card = |one: &Integration| {
        let found = health.iter().find(|(network, _)| *network == one.network);
        let health = found.map(|(_, health)| health.clone()).unwrap_or_default();
        Card::of(one, &health, now)
    };
    Ok(IntegrationsPage {
        shell: context.shell(Section::Integrations),
        cards: integrations.iter().map(card).collect(),
        billing: BillingCard::all(handles, caller, &app).await?,
        form,
        new_secret: None,
    })
}

/// Shows the page.
pub(crate) async fn show(
    State(handles): State<DashboardHandles>,
    context: ReportContext<AppsRead>,
) -> Result<Response, Failure> {
    let page = page(
        &handles,
        &context,
        &context.authorized,
        FormState::default(),
    )
    .await?;
    Ok(context.page(&page))
}
