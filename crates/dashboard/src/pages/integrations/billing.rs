//! `POST /apps/{app}/integrations/billing/{provider}` — sets or removes the secret of a billing provider.
//! `POST /apps/{app}/integrations/billing/{provider}/secret` — makes a new one, and shows it once.

use crate::access::FormSubmission;
use crate::failure::Failure;
use crate::form_state::FormState;
use crate::response::see_other;
use crate::sealing::FormSecretSealer;
use crate::state::DashboardHandles;
use crate::text;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tributary_domain::access::{AppsRead, AppsWrite, Authorized};
use tributary_domain::app::{App, AppChange, AppSecret, BillingProvider};
use tributary_domain::billing::signature::standard_secret;
use tributary_domain::report::range::days_before;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_fields::app::read_billing_secrets;
use tributary_store::BillingFigures;

/// A provider, as a card shows it.
pub(super) struct BillingCard {
    pub(super) provider: &'static str,
    pub(super) name: &'static str,
    pub(super) url: String,
    pub(super) is_set: bool,
    /// Whether a secret says who it is; the App Store signs what it sends.
    pub(super) takes_secret: bool,
    /// The field of the secret, as the REST interface names it.
    pub(super) field: String,
    /// Events of the last days, and how many of them have a device.
    pub(super) events: String,
    pub(super) joined: String,
    /// Posts that could not prove who they are from.
    pub(super) refused: String,
}

/// A secret that was made just now.
pub(super) struct NewBillingSecret {
    pub(super) name: &'static str,
    pub(super) secret: String,
}

/// Days that a card counts, today included.
pub(super) const DAYS: i32 = 30;

/// What a provider is called.
const fn name(provider: BillingProvider) -> &'static str {
    match provider {
        BillingProvider::Revenuecat => "RevenueCat",
        BillingProvider::Superwall => "Superwall",
        BillingProvider::Appstore => "App Store",
    }
}

fn field(provider: BillingProvider) -> String {
    format!("billing.{}.secret", provider.as_str())
}

impl BillingCard {
    pub(super) fn url_id(&self) -> String {
        format!("url-{}", self.provider)
    }

    /// One of each provider.
    pub(super) async fn all(
        handles: &DashboardHandles,
        caller: &Authorized<AppsRead>,
        app: &App,
    ) -> Result<Vec<Self>, Failure> {
        let (today, base_url) = (Day::of(handles.source.now()), &handles.base_url);
        let days = days_before(today, DAYS - 1)..=today;
        let figures = handles
            .store
            .billing_figures(&caller.analytics_access(), app.id, days)
            .await?;
        let counted = |provider: BillingProvider, of: fn(&BillingFigures) -> i64| -> i64 {
            let own = figures
                .iter()
                .filter(|one| one.provider == provider && one.environment == caller.environment());
            own.map(of).sum()
        };
        let card = |provider: &BillingProvider| Self {
            events: text::count(counted(*provider, |one| one.events)),
            joined: match counted(*provider, |one| one.events) {
                0 => "–".to_owned(),
                events => text::percent(counted(*provider, |one| one.matched), events),
            },
            refused: text::count(counted(*provider, |one| one.unauthorized)),
            provider: provider.as_str(),
            name: name(*provider),
            url: format!("{base_url}/api/webhook/{}/{}", provider.as_str(), app.id),
            is_set: app.secrets.contains(&AppSecret::Billing(*provider)),
            takes_secret: BillingProvider::WITH_SECRET.contains(provider),
            field: field(*provider),
        };
        Ok(BillingProvider::ALL.iter().map(card).collect())
    }
}

/// The provider that a path names, where it has a secret.
fn provider_in_path(posted: &FormSubmission<AppsWrite>) -> Result<BillingProvider, Failure> {
    BillingProvider::parse(posted.path_parameter("provider"))
        .filter(|provider| BillingProvider::WITH_SECRET.contains(provider))
        .ok_or(Failure::NotFound)
}

/// Makes a secret. The one before it opens the door for a while as well.
pub(crate) async fn create_secret(
    State(handles): State<DashboardHandles>,
    posted: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let (provider, app) = (provider_in_path(&posted)?, posted.app()?.id);
    let secret = standard_secret(handles.source.random_bytes());
    let sealer = FormSecretSealer::new(&handles, &posted)?;
    let sealed = sealer.seal_app_secret(AppSecret::Billing(provider), &secret);
    let rotation = AppChange::rotation(provider, sealed);
    let (caller, origin) = (&posted.authorized, posted.origin(&handles));
    let stored = handles
        .store
        .update_app(caller, app, rotation, Precondition::None, origin);
    stored.await?;
    let reader = posted.authorized.read_access();
    let page = super::list::page(&handles, &posted.context, &reader, FormState::default()).await?;
    let made = NewBillingSecret {
        name: name(provider),
        secret,
    };
    Ok(posted.page_with(StatusCode::OK, &page.with_secret(made)))
}

/// Takes the form.
pub(crate) async fn update(
    State(handles): State<DashboardHandles>,
    posted: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let (provider, app) = (provider_in_path(&posted)?, posted.app()?.id);
    let (mut secrets, faults) = posted.form.read(read_billing_secrets);
    if !faults.is_empty() {
        // What was typed is a secret, and is not sent back.
        let form = FormState::default().with_faults(faults);
        let caller = posted.authorized.read_access();
        let page = super::list::page(&handles, &posted.context, &caller, form).await?;
        return Ok(posted.page_with(StatusCode::UNPROCESSABLE_ENTITY, &page));
    }
    secrets.retain(|(secret, _)| *secret == AppSecret::Billing(provider));
    let change = AppChange {
        secrets: FormSecretSealer::new(&handles, &posted)?.seal_app_secrets(secrets),
        ..AppChange::default()
    };
    let (caller, origin) = (&posted.authorized, posted.origin(&handles));
    let stored = handles
        .store
        .update_app(caller, app, change, Precondition::None, origin);
    stored.await?;
    Ok(see_other(&format!(
        "/apps/{app}/integrations?notice=saved#billing"
    )))
}
