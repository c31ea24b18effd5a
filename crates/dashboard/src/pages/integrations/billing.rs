//! `POST /apps/{app}/integrations/billing/{provider}` — sets or removes the secret of a billing provider.

use crate::access::Posted;
use crate::answer::see_other;
use crate::failure::Failure;
use crate::filled::Filled;
use crate::reading::Reading;
use crate::state::Handles;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tributary_domain::access::AppsWrite;
use tributary_domain::app::{
    App, AppChange, AppSecret, BILLING_SECRET_CHARS_MIN, BillingProvider, SECRET_CHARS_MAX,
};
use tributary_domain::keyring::place::{SEALED_FOR_APP, SecretPlace, check_secret};
use tributary_domain::vocabulary::revision::Precondition;

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
}

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
    pub(super) fn all(app: &App, base_url: &str) -> Vec<Self> {
        let card = |provider: &BillingProvider| Self {
            provider: provider.as_str(),
            name: name(*provider),
            url: format!("{base_url}/api/webhook/{}/{}", provider.as_str(), app.id),
            is_set: app.secrets.contains(&AppSecret::Billing(*provider)),
            takes_secret: BillingProvider::WITH_SECRET.contains(provider),
            field: field(*provider),
        };
        BillingProvider::ALL.iter().map(card).collect()
    }
}

/// Takes the form.
pub(crate) async fn update(
    State(handles): State<Handles>,
    posted: Posted<AppsWrite>,
) -> Result<Response, Failure> {
    let provider = BillingProvider::parse(posted.part("provider"))
        .filter(|provider| BillingProvider::WITH_SECRET.contains(provider))
        .ok_or(Failure::NotFound)?;
    let (app, organization) = (posted.app()?.id, posted.authorized.organization());
    let secret = AppSecret::Billing(provider);
    let mut reading = Reading::of(&posted.form);
    let sealed = reading.secret(&field(provider), |text| {
        check_secret(text, &(BILLING_SECRET_CHARS_MIN..=SECRET_CHARS_MAX))?;
        let place = SecretPlace::new(organization, app, SEALED_FOR_APP, secret.as_str());
        let nonce = handles.source.bytes();
        Ok(handles.keyring.seal(&place.parts(), nonce, text.as_bytes()))
    });
    if !reading.faults.is_empty() {
        // What was typed is a secret, and is not sent back.
        let form = Filled::default().with_faults(reading.faults);
        let caller = posted.authorized.reading();
        let page = super::list::page(&handles, &posted.reader, &caller, form).await?;
        return Ok(posted.page_with(StatusCode::UNPROCESSABLE_ENTITY, &page));
    }
    let change = AppChange {
        secrets: vec![(secret, sealed)],
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
