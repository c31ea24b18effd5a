//! Fixtures for clicks, devices and events.

use super::fixtures::{SharedStore, app, at, link, new_key, organization, unique};
use crate::{ConfigureOutcome, DeviceDetails};
use tributary_domain::access::{AnalyticsRead, AppsWrite, Authorized, Environment, authorize};
use tributary_domain::app::App;
use tributary_domain::attestation::PresentedOutcome;
use tributary_domain::attribution::evidence::{ClickIdSource, ReferrerTimes};
use tributary_domain::click::Click;
use tributary_domain::click::address::AddressClass;
use tributary_domain::click::agent::Agent;
use tributary_domain::click::params::TrackingParams;
use tributary_domain::device::{Consent, DeviceKey, IdentityClaim, Platform, Traits};
use tributary_domain::event::EventFilter;
use tributary_domain::event::sdk::{SdkEvent, SdkRequestContext};
use tributary_domain::install::{ClaimedClick, ClickClaim, ConfigureCommand};
use tributary_domain::integration::Network;
use tributary_domain::ledger::MoneyPolicy;
use tributary_domain::link::Link;
use tributary_domain::report::Figures;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::digest::Digest;
use tributary_domain::vocabulary::id::{AttributionId, ClickId, EventId};
use tributary_domain::vocabulary::money::Amount;

/// An app with a link, and callers for it.
pub struct Tenant {
    /// Store under test.
    pub store: SharedStore,
    /// Caller that may change the app.
    pub writer: Authorized<AppsWrite>,
    /// Caller that may read live data.
    pub reader: Authorized<AnalyticsRead>,
    /// The app.
    pub app: App,
    /// The app's link.
    pub link: Link,
}

/// Creates an app with a link.
pub async fn tenant(store: &SharedStore) -> Tenant {
    let writer = organization(store).await;
    let app = app(store, &writer).await;
    let link = link(store, &writer, app.id).await;
    let reader = Authorized::operator(writer.organization());
    Tenant {
        store: store.clone(),
        writer,
        reader,
        app,
        link,
    }
}

/// Returns the hash of a numbered address.
pub fn address_hash(number: u8) -> Digest {
    Digest::of(&[number])
}

impl Tenant {
    /// Returns a caller that may read test data.
    pub fn test_reader(&self) -> Authorized<AnalyticsRead> {
        let mut key = new_key(self.writer.organization()).key;
        key.environment = Environment::Test;
        authorize(&key, super::fixtures::CLIENT).expect("a test key reads analytics")
    }

    /// Builds a click on the link from an Android phone.
    pub fn click(&self, seconds: i64) -> Click {
        Click {
            id: ClickId::new(at(seconds), unique()),
            app: self.app.id,
            link: self.link.id,
            clicked_at: at(seconds),
            network: Some(Network::A),
            network_by: None,
            bot: None,
            agent: Agent {
                platform: Platform::Android,
                os_version: Some("14".to_owned()),
                model: Some("Pixel 8".to_owned()),
            },
            language: Some("en".to_owned()),
            timezone: None,
            screen: None,
            address: Some(std::net::IpAddr::from([203, 0, 113, 9])),
            address_hash: Some(address_hash(1)),
            advertising_hash: None,
            country: Some("DE".to_owned()),
            user_agent: Some("Mozilla/5.0".to_owned()),
            referer: None,
            destination_origin: None,
            environment: None,
            captured: TrackingParams::default(),
        }
    }

    /// Records a click and returns it.
    pub async fn record_click(&self, seconds: i64) -> Click {
        let click = self.click(seconds);
        self.store
            .record_click(click.clone())
            .await
            .expect("a click is recorded");
        click
    }

    /// Builds the first `configure` call of an Android device, without evidence for a click.
    pub fn configure(&self, device: &str, seconds: i64) -> ConfigureCommand {
        ConfigureCommand {
            app: self.app.id,
            environment: Environment::Live,
            policy: MoneyPolicy::Count,
            rules: self.app.attribution.clone(),
            at: at(seconds),
            device: DeviceKey::parse(device).expect("a device id"),
            traits: Traits {
                os_version: Some("14".to_owned()),
                model: Some("Pixel 8".to_owned()),
                app_version: Some("1.2".to_owned()),
                locale: Some("en_US".to_owned()),
                ..Traits::of(Platform::Android)
            },
            identity: IdentityClaim::default(),
            advertising_id: None,
            idfv: None,
            consent: Consent::default(),
            erase_proof: None,
            country: Some("DE".to_owned()),
            claims: Vec::new(),
            referrer: None,
            times: ReferrerTimes::default(),
            ad_services_token: None,
            attestation: PresentedOutcome::default(),
            address_class: AddressClass::Other,
            address_hash: None,
            address_hashes: Vec::new(),
            advertising_hash: None,
            app_link_click: None,
            attribution_id: AttributionId::new(at(seconds), unique()),
            install_id: EventId::new(at(seconds), unique()),
        }
    }

    /// Builds a first `configure` call with a click id.
    pub fn configure_with_click(
        &self,
        device: &str,
        click: &Click,
        seconds: i64,
    ) -> ConfigureCommand {
        ConfigureCommand {
            claims: vec![ClickClaim {
                click: ClaimedClick::Authentic(click.id),
                source: ClickIdSource::Client,
            }],
            ..self.configure(device, seconds)
        }
    }

    /// Builds a first `configure` call from the same address as the clicks.
    pub fn configure_from_address(&self, device: &str, seconds: i64) -> ConfigureCommand {
        ConfigureCommand {
            address_hash: Some(address_hash(1)),
            address_hashes: vec![address_hash(1)],
            ..self.configure(device, seconds)
        }
    }

    /// Calls `configure`.
    pub async fn call_configure(&self, command: ConfigureCommand) -> ConfigureOutcome {
        self.store
            .configure(command)
            .await
            .expect("a call succeeds")
    }

    /// Builds the request context for a device's events.
    pub fn arrival(&self, device: &str, seconds: i64) -> SdkRequestContext {
        SdkRequestContext {
            app: self.app.id,
            environment: Environment::Live,
            device: DeviceKey::parse(device).expect("a device id"),
            received_at: at(seconds),
            country: None,
            policy: MoneyPolicy::Count,
            requires_attestation: false,
            revenue_events: Vec::new(),
        }
    }

    /// Returns a device in the live environment.
    pub async fn device_details(&self, device: &str) -> DeviceDetails {
        let device = DeviceKey::parse(device).expect("a device id");
        let story = self.store.device(&self.reader, self.app.id, device);
        story.await.expect("the device is read")
    }

    /// Returns all live figures by network.
    pub async fn figures(&self) -> Vec<(String, Figures)> {
        self.store
            .figures_by_network(&self.reader, self.app.id, (at(-1_000_000), at(10_000_000)))
            .await
            .expect("figures are read")
    }

    /// Returns one network's live figures.
    pub async fn figures_of(&self, network: &str) -> Figures {
        let all = self.figures().await;
        let found = all.into_iter().find(|(name, _)| name == network);
        found.map(|(_, figures)| figures).unwrap_or_default()
    }

    /// Returns the names of a device's events, newest first, with their credited networks.
    pub async fn log(&self, device: &str) -> Vec<(String, Option<String>)> {
        let filter = EventFilter {
            device: Some(DeviceKey::parse(device).expect("a device id")),
            ..EventFilter::default()
        };
        let page = super::fixtures::first_page("500");
        let events = self.store.events(&self.reader, self.app.id, filter, page);
        let network = |credit: tributary_domain::event::Credit| credit.network.as_str().to_owned();
        let events = events.await.expect("the log is read").items.into_iter();
        events
            .map(|event| (event.name, event.credit.map(network)))
            .collect()
    }
}

/// Builds an event without revenue.
pub fn event(given_id: &str, name: &str, seconds: i64) -> SdkEvent {
    SdkEvent {
        id: EventId::new(at(seconds), unique()),
        external_id: given_id.to_owned(),
        name: name.to_owned(),
        occurred_at: at(seconds),
        revenue: None,
        currency: None,
        params: None,
        consent: None,
    }
}

/// Builds an event with revenue.
pub fn payment(given_id: &str, amount: &str, currency: &str, seconds: i64) -> SdkEvent {
    SdkEvent {
        revenue: Some(Amount::parse(amount).expect("an amount")),
        currency: Currency::from_stored(currency),
        ..event(given_id, "purchase", seconds)
    }
}
