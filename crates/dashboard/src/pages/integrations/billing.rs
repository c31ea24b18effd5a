//! `POST /apps/{app}/integrations/billing/{provider}` — sets or removes a provider's secret.
//! `POST /apps/{app}/integrations/billing/{provider}/secret` — generates a secret, shown once.

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

/// A billing provider's card.
pub(super) struct BillingCard {
    pub(super) provider: &'static str,
    pub(super) name: &'static str,
    /// Where the webhook URL is entered.
    pub(super) console: &'static str,
    pub(super) url: String,
    pub(super) is_set: bool,
    /// Whether the provider authenticates with a secret. The App Store signs notifications instead.
    pub(super) takes_secret: bool,
    /// Whether this service can create the secret. Stripe issues its own.
    pub(super) creates_secret: bool,
    /// Name of the secret's field in the REST API.
    pub(super) field: String,
    /// Name of the field that keeps the replaced secret valid for a while.
    pub(super) keep_field: String,
    /// Number of events in the last [`DAYS`] days, and the share of them that were matched to a
    /// device.
    pub(super) events: String,
    pub(super) joined: String,
    /// Notifications rejected because of a wrong secret or signature, or another source.
    pub(super) refused: String,
    /// Names of the connected providers that report the same payments; empty if there are none.
    pub(super) overlaps: String,
}

/// A newly generated secret.
pub(super) struct NewBillingSecret {
    pub(super) name: &'static str,
    pub(super) secret: String,
}

/// Days counted on a card, including today.
pub(super) const DAYS: i32 = 30;

/// Returns a provider's name.
const fn name(provider: BillingProvider) -> &'static str {
    match provider {
        BillingProvider::Revenuecat => "RevenueCat",
        BillingProvider::Superwall => "Superwall",
        BillingProvider::Appstore => "App Store",
        BillingProvider::Stripe => "Stripe",
        BillingProvider::Adapty => "Adapty",
        BillingProvider::Qonversion => "Qonversion",
    }
}

/// Returns the name of the website on which a provider's webhook URL is entered.
const fn console(provider: BillingProvider) -> &'static str {
    match provider {
        BillingProvider::Appstore => "App Store Connect",
        _ => name(provider),
    }
}

fn overlapping_names(app: &App, provider: BillingProvider) -> String {
    let others = app.overlapping_sources(provider).into_iter();
    others.map(name).collect::<Vec<_>>().join(", ")
}

fn field(provider: BillingProvider) -> String {
    format!("billing.{}.secret", provider.as_str())
}

impl BillingCard {
    pub(super) fn url_id(&self) -> String {
        format!("url-{}", self.provider)
    }

    /// Returns the cards for all providers.
    pub(super) async fn all(
        handles: &DashboardHandles,
        caller: &Authorized<AppsRead>,
        app: &App,
    ) -> Result<Vec<Self>, Failure> {
        let (today, base_url) = (Day::of(handles.runtime.now()), &handles.base_url);
        let days = days_before(today, DAYS - 1)..=today;
        let figures = handles
            .store
            .billing_figures(&caller.analytics_access(), app.id, days)
            .await?;
        let counted = |provider: BillingProvider, of: fn(&BillingFigures) -> i64| -> i64 {
            let matching = figures
                .iter()
                .filter(|one| one.provider == provider && one.environment == caller.environment());
            matching.map(of).sum()
        };
        let card = |provider: &BillingProvider| Self {
            events: text::count(counted(*provider, |one| one.events)),
            joined: match counted(*provider, |one| one.events) {
                0 => "–".to_owned(),
                events => text::percent(counted(*provider, |one| one.matched), events),
            },
            refused: text::count(counted(*provider, |one| one.unauthorized)),
            overlaps: overlapping_names(app, *provider),
            provider: provider.as_str(),
            name: name(*provider),
            console: console(*provider),
            url: format!("{base_url}/api/webhook/{}/{}", provider.as_str(), app.id),
            is_set: app.secrets.contains(&AppSecret::Billing(*provider)),
            takes_secret: BillingProvider::WITH_SECRET.contains(provider),
            creates_secret: provider.has_created_secret(),
            field: field(*provider),
            keep_field: format!("billing.{}.keepPrevious", provider.as_str()),
        };
        Ok(BillingProvider::ALL.iter().map(card).collect())
    }
}

/// Returns the provider in the path if it authenticates with a secret.
fn provider_in_path(submission: &FormSubmission<AppsWrite>) -> Result<BillingProvider, Failure> {
    BillingProvider::parse(submission.path_parameter("provider"))
        .filter(|provider| BillingProvider::WITH_SECRET.contains(provider))
        .ok_or(Failure::NotFound)
}

/// Generates a secret. The previous secret stays valid for a while.
pub(crate) async fn create_secret(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let (provider, app) = (provider_in_path(&submission)?, submission.app()?.id);
    if !provider.has_created_secret() {
        return Err(Failure::NotFound);
    }
    let secret = standard_secret(handles.runtime.random_bytes());
    let sealer = FormSecretSealer::new(&handles, &submission)?;
    let sealed = sealer.seal_app_secret(AppSecret::Billing(provider), &secret);
    let rotation = AppChange::rotation(AppSecret::Billing(provider), sealed);
    let (caller, origin) = (&submission.authorized, submission.origin(&handles));
    let stored = handles
        .store
        .update_app(caller, app, rotation, Precondition::None, origin);
    stored.await?;
    let caller = submission.authorized.read_access();
    let page =
        super::list::page(&handles, &submission.context, &caller, FormState::default()).await?;
    let new_secret = NewBillingSecret {
        name: name(provider),
        secret,
    };
    Ok(submission.page_with(StatusCode::OK, &page.with_secret(new_secret)))
}

/// Stores the submitted secret.
pub(crate) async fn update(
    State(handles): State<DashboardHandles>,
    submission: FormSubmission<AppsWrite>,
) -> Result<Response, Failure> {
    let (provider, app) = (provider_in_path(&submission)?, submission.app()?.id);
    let ((mut secrets, kept_secrets), faults) = submission.form.read(read_billing_secrets);
    if !faults.is_empty() {
        // Typed secrets are never sent back.
        let form = FormState::default().with_faults(faults);
        let caller = submission.authorized.read_access();
        let page = super::list::page(&handles, &submission.context, &caller, form).await?;
        return Ok(submission.page_with(StatusCode::UNPROCESSABLE_ENTITY, &page));
    }
    secrets.retain(|(secret, _)| *secret == AppSecret::Billing(provider));
    let change = AppChange {
        secrets: FormSecretSealer::new(&handles, &submission)?.seal_app_secrets(secrets),
        kept_secrets,
        ..AppChange::default()
    };
    let (caller, origin) = (&submission.authorized, submission.origin(&handles));
    let stored = handles
        .store
        .update_app(caller, app, change, Precondition::None, origin);
    stored.await?;
    let page = submission.notice_url("integrations", "saved")?;
    Ok(see_other(&format!("{page}#billing")))
}

#[cfg(test)]
mod tests {
    use crate::testing::TestDashboard;
    use axum::http::StatusCode;
    use tributary_domain::access::person::Role;
    use tributary_domain::app::{AppSecret, BillingProvider};
    use tributary_domain::vocabulary::id::AppId;

    #[tokio::test]
    async fn cards_name_the_website_for_the_webhook_url() {
        let dashboard = TestDashboard::start().await;
        let owner = dashboard.sign_in_as(Role::Owner).await;
        let app = owner.create_app().await;
        let page = owner.get(&format!("/apps/{app}/integrations")).await;
        for website in [
            "RevenueCat",
            "Superwall",
            "App Store Connect",
            "Stripe",
            "Adapty",
            "Qonversion",
        ] {
            let hint = format!("Enter this webhook URL in {website}:");
            assert!(page.text.contains(&hint), "{hint}");
        }
    }

    #[tokio::test]
    async fn a_second_source_of_a_store_is_named_when_it_is_saved() {
        const TWICE: &str = "count twice";
        const REJECTED: &str = "Apple's notifications are rejected";
        let dashboard = TestDashboard::start().await;
        let owner = dashboard.sign_in_as(Role::Owner).await;
        let app = owner.create_app().await;
        let integrations = format!("/apps/{app}/integrations");
        let save = async |provider: &str| {
            let path = format!("{integrations}/billing/{provider}");
            let form = format!("billing.{provider}.secret=whsec_0123456789abcdef");
            let saved = owner.post(&path, &form).await;
            assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text);
            let page = owner.get(&integrations).await.text;
            (page.matches(TWICE).count(), page.contains(REJECTED))
        };
        assert_eq!(save("stripe").await, (0, false));
        assert_eq!(save("revenuecat").await, (0, true));
        assert_eq!(save("adapty").await, (2, true), "on both cards");
    }

    #[tokio::test]
    async fn the_secret_that_stripe_issues_is_entered() {
        let dashboard = TestDashboard::start().await;
        let owner = dashboard.sign_in_as(Role::Owner).await;
        let app = owner.create_app().await;
        let integrations = format!("/apps/{app}/integrations");
        let create = |provider: &str| format!("{integrations}/billing/{provider}/secret");
        let page = owner.get(&integrations).await;
        assert!(!page.text.contains(&create("stripe")));
        assert!(page.text.contains(&create("adapty")));
        let created = owner.post(&create("stripe"), "").await;
        assert_eq!(created.status, StatusCode::NOT_FOUND);
        let entered = format!("{integrations}/billing/stripe");
        let saved = owner
            .post(&entered, "billing.stripe.secret=whsec_0123456789abcdef")
            .await;
        assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text);
        let page = owner.get(&integrations).await;
        assert!(page.text.contains("Secret set"));
        let kept = async || {
            let id = AppId::parse(&app).unwrap();
            let found = dashboard.store.billing_app(id).await.unwrap().unwrap();
            let mut secrets = found.secrets.iter();
            secrets.any(|one| one.secret == AppSecret::BillingPrevious(BillingProvider::Stripe))
        };
        let keep = "billing.stripe.keepPrevious=on&";
        assert!(page.input("billing.stripe.keepPrevious").has("checked"));
        for (number, keep, is_kept) in [(1, keep, true), (2, "", false)] {
            let form = format!("{keep}billing.stripe.secret=whsec_0123456789abcde{number}");
            let saved = owner.post(&entered, &form).await;
            assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text);
            assert_eq!(kept().await, is_kept, "{form}");
        }
    }
}
