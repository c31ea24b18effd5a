//! A person to erase, with every kind of personal data.

use super::fixtures::{SharedStore, at, first_page, new_key, origin, unique};
use super::outbox_fixtures::{ForwardingApp, forwarding_app};
use super::sdk_fixtures::{Tenant, event, payment};
use crate::NotificationOutcome;
use std::collections::BTreeMap;
use tributary_domain::access::{Authorized, Environment, PeopleErase, Permission, authorize};
use tributary_domain::app::BillingProvider;
use tributary_domain::billing::money::ReportedPrice;
use tributary_domain::billing::{
    IncomingNotification, NotificationMeaning, PaymentClaim, ProviderNotification, Subscriber,
};
use tributary_domain::click::Click;
use tributary_domain::device::{
    AdvertisingId, Consent, ContactHashes, DeviceKey, IdentityClaim, Platform, UserKey,
};
use tributary_domain::erasure::pseudonym;
use tributary_domain::event::web::{WebEvent, WebEventKind};
use tributary_domain::event::{Event, EventFilter};
use tributary_domain::link::{LinkChange, LinkKind};
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::currency::Currency;
use tributary_domain::vocabulary::digest::{Digest, hex};
use tributary_domain::vocabulary::id::EventId;
use tributary_domain::vocabulary::money::Amount;
use tributary_domain::vocabulary::revision::Precondition;
use tributary_domain::vocabulary::web_url::{PageUrl, WebOrigin};

/// Device id.
pub const DEVICE: &str = "6F9619FF-8B86-4011-B42D-00C04FC964E1";
/// User id in the app.
pub const PERSON: &str = "the-person-to-erase";
/// Another user id of the person, from before sign-in.
pub const ALIAS: &str = "the-alias-to-erase";
const ADVERTISING: &str = "38400000-8cf0-11bd-b23e-10b96e40000d";
const ADDRESS: [u8; 4] = [203, 0, 113, 77];
const SHOP: &str = "https://shop.example.com";

/// Tables in which deleting attribution data removes all of [`personal_texts`] except the device
/// id.
pub const CLEARED_TABLES: [&str; 4] = ["devices", "identities", "clicks", "ad_services_tokens"];

/// Time of the person's first subscription, when the device was not known yet.
pub const LONG_AGO: i64 = -4_000_000;

/// A person with a phone, a subscription and a shop.
pub struct PersonScenario {
    /// App with Meta (`network_a`) connected.
    pub forwarding: ForwardingApp,
    /// Click that led to the install.
    pub click: Click,
}

/// Returns the proof of the person's erase token. It does not identify the person.
pub fn person_proof() -> Digest {
    Digest::of(b"token and device")
}

/// Parses a device id.
pub fn device(text: &str) -> DeviceKey {
    DeviceKey::parse(text).expect("a device id")
}

/// Parses a user id.
pub fn person(text: &str) -> UserKey {
    UserKey::parse(text).expect("a user id")
}

/// Builds a notification about one of the person's subscriptions.
pub fn billing_notification(
    tenant: &Tenant,
    id: &str,
    chain: &str,
    second: i64,
    meaning: NotificationMeaning,
) -> IncomingNotification {
    let pays = matches!(meaning, NotificationMeaning::Payment(_));
    let subscription = Some(chain.to_owned()).filter(|chain| !chain.is_empty());
    IncomingNotification {
        app: tenant.app.id,
        provider: BillingProvider::Revenuecat,
        content: ProviderNotification {
            external_id: id.to_owned(),
            kind: "ANY".to_owned(),
            environment: Environment::Live,
            meaning,
            store: Some("PLAY_STORE".to_owned()),
            product: Some("weekly".to_owned()),
            transaction: subscription.as_ref().map(|_| format!("t-{id}")),
            original_transaction: subscription,
            other_transactions: Vec::new(),
            refund: None,
            period: None,
            country: Some("DE".to_owned()),
            price: ReportedPrice {
                paid: None,
                usd: pays.then(|| Amount::parse("10").expect("an amount")),
            },
            tax: None,
            commission: None,
            happened_at: Some(at(second)),
            subscriber: Subscriber {
                people: vec![person(PERSON), person(ALIAS)],
                ..Subscriber::default()
            },
        },
        body: format!("{{\"id\":\"{id}\",\"app_user_id\":\"{PERSON}\"}}"),
        received_at: at(second + 1),
        trial_hold: None,
    }
}

/// Builds a notification that creates no event, although it names device and person.
pub fn receipt(tenant: &Tenant, id: &str, chain: &str, second: i64) -> IncomingNotification {
    let mut arrival = billing_notification(tenant, id, chain, second, NotificationMeaning::Receipt);
    arrival.content.subscriber.device = Some(device(DEVICE));
    let advertising = &mut arrival.content.subscriber.advertising;
    advertising.extend(AdvertisingId::parse(ADVERTISING));
    arrival
}

/// Creates the scenario.
pub async fn person_scenario(store: &SharedStore) -> PersonScenario {
    let mut forwarding = forwarding_app(store).await;
    open_shop(&mut forwarding.tenant).await;
    let click = clicked(&forwarding.tenant).await;
    let scenario = PersonScenario { forwarding, click };
    // Too old to be matched to the device; the notification only names the person.
    let lonely = billing_notification(
        scenario.tenant(),
        "lonely",
        "sub-0",
        LONG_AGO,
        NotificationMeaning::TrialStart,
    );
    scenario.notify(&lonely).await;
    scenario.install().await;
    scenario.subscribe().await;
    scenario
}

/// Makes the link redirect to a shop.
async fn open_shop(tenant: &mut Tenant) {
    let change = LinkChange {
        kind: Change::Set(LinkKind::WebFunnel),
        destination_url: Change::Set(PageUrl::parse(SHOP).expect("a URL")),
        ..LinkChange::default()
    };
    let (app, link) = (tenant.app.id, tenant.link.id);
    let none = Precondition::None;
    let store = tenant.store.clone();
    let changed = store.update_link(&tenant.writer, app, link, change, none, origin(3));
    tenant.link = changed.await.expect("a link is changed");
}

/// Records a click with every field set.
async fn clicked(tenant: &Tenant) -> Click {
    let mut click = tenant.click(10);
    click.agent.model = Some("Model-To-Erase".to_owned());
    click.timezone = Some("Zone/To_Erase".to_owned());
    click.address = Some(ADDRESS.into());
    click.address_hash = Some(Digest::of(b"address to erase"));
    click.advertising_hash = Some(Digest::of(b"advertising id to erase"));
    click.user_agent = Some("Agent-To-Erase/1.0".to_owned());
    click.referer = Some("https://referer-to-erase.example".to_owned());
    click.destination_origin = Some(SHOP.to_owned());
    click.captured.campaign.id = Some("spring".to_owned());
    click.captured.click_ids.fbclid = Some("fbclid-to-erase".to_owned());
    click.captured.browser_ids.fbp = Some("fbp-to-erase".to_owned());
    click.captured.utm.term = Some("utm-to-erase".to_owned());
    click.captured.query_params =
        BTreeMap::from([("invite".to_owned(), "invite-to-erase".to_owned())]);
    let recorded = tenant.store.record_click(click.clone()).await;
    recorded.expect("a click is recorded");
    click
}

impl PersonScenario {
    /// Returns the app's tenant.
    pub const fn tenant(&self) -> &Tenant {
        &self.forwarding.tenant
    }

    /// Returns a caller that may erase devices.
    pub fn eraser(&self, environment: Environment) -> Authorized<PeopleErase> {
        let mut key = new_key(self.tenant().writer.organization()).key;
        key.permission = Permission::Full;
        key.environment = environment;
        authorize(&key, super::fixtures::CLIENT).expect("a full key erases")
    }

    /// Erases the device. Returns its pseudonym.
    pub async fn erase(&self, seconds: i64) -> DeviceKey {
        let name = pseudonym([7; 16]);
        let (app, eraser) = (self.tenant().app.id, self.eraser(Environment::Live));
        let store = &self.tenant().store;
        let erased =
            store.erase_device(&eraser, app, device(DEVICE), name.clone(), origin(seconds));
        erased.await.expect("a device is erased");
        name
    }

    /// Configures a phone with every field set, and sends events.
    async fn install(&self) {
        let tenant = self.tenant();
        let mut command = tenant.configure_with_click(DEVICE, &self.click, 20);
        command.traits.model = Some("Phone-To-Erase".to_owned());
        command.traits.platform = Platform::Ios;
        command.advertising_id = AdvertisingId::parse(ADVERTISING);
        command.idfv = Some("idfv-to-erase".to_owned());
        command.address_hash = Some(Digest::of(b"home to erase"));
        command.identity = IdentityClaim {
            user: Some(person(ALIAS)),
            contact_hashes: ContactHashes {
                email: Some("e1".repeat(32)),
                phone: Some("f2".repeat(32)),
                ..ContactHashes::default()
            },
            ..IdentityClaim::default()
        };
        command.ad_services_token = Some("token-to-erase".to_owned());
        command.erase_proof = Some(person_proof());
        tenant.call_configure(command).await;
        let identity = IdentityClaim {
            user: Some(person(PERSON)),
            ..IdentityClaim::default()
        };
        let (app, live) = (tenant.app.id, Environment::Live);
        let identified = tenant
            .store
            .identify(app, live, device(DEVICE), identity, at(25));
        identified.await.expect("a user is identified");
        let mut signed_up = event("sign-up", "sign_up", 30);
        signed_up.params = Some(r#"{"name":"Params To Erase"}"#.to_owned());
        signed_up.consent = Some(Consent::default());
        let events = vec![signed_up, payment("paid", "5", "USD", 90_000)];
        let accepted = tenant
            .store
            .accept_sdk_events(tenant.arrival(DEVICE, 90_000), events);
        accepted.await.expect("events are accepted");
        let posted = tenant
            .store
            .accept_web_event(self.web_purchase("web-1", "20"));
        posted.await.expect("an event is accepted");
    }

    /// Builds a purchase in the shop.
    pub fn web_purchase(&self, id: &str, amount: &str) -> WebEvent {
        WebEvent {
            app: self.tenant().app.id,
            id: EventId::new(at(100), unique()),
            external_id: id.to_owned(),
            click_text: self.click.id.to_string(),
            click: Some(self.click.id),
            device: device(DEVICE),
            occurred_at: at(100),
            kind: WebEventKind::Purchase,
            amount: Some(Amount::parse(amount).expect("an amount")),
            currency: Currency::from_stored("USD"),
            source_url: format!("{SHOP}/page-to-erase"),
            origin: WebOrigin::from_stored(SHOP).expect("an origin"),
            parent: None,
            email_sha256: Some("d3".repeat(32)),
            received_at: at(101),
        }
    }

    /// Sends notifications: for a subscription that is matched by user id, for one that names the
    /// device, for a transfer, and notifications that create no event.
    async fn subscribe(&self) {
        let tenant = self.tenant();
        let first = NotificationMeaning::Payment(PaymentClaim::Start);
        self.notify(&billing_notification(tenant, "first", "sub-1", 200, first))
            .await;
        let mut named = billing_notification(
            tenant,
            "named",
            "sub-2",
            210,
            NotificationMeaning::TrialStart,
        );
        named.content.subscriber.device = Some(device(DEVICE));
        named
            .content
            .subscriber
            .advertising
            .extend(AdvertisingId::parse(ADVERTISING));
        self.notify(&named).await;
        let transfer = NotificationMeaning::Transfer {
            from: vec![person(ALIAS)],
            to: vec![person(PERSON)],
        };
        self.notify(&billing_notification(tenant, "transfer", "", 220, transfer))
            .await;
        self.notify(&receipt(tenant, "test", "", 230)).await;
        let mut of_a_subscription = receipt(tenant, "invoice", "sub-3", 240);
        // The body is empty, because an erasure does not find notifications of a subscription
        // without events by their bodies.
        "{}".clone_into(&mut of_a_subscription.body);
        self.notify(&of_a_subscription).await;
    }

    /// Sends a notification.
    pub async fn notify(&self, arrival: &IncomingNotification) -> NotificationOutcome {
        let accepted = self.tenant().store.accept_notification(arrival.clone());
        accepted.await.expect("a notification is stored")
    }

    /// Returns the app's events by external id.
    pub async fn log(&self, filter: EventFilter) -> BTreeMap<String, Event> {
        let (store, app) = (&self.tenant().store, self.tenant().app.id);
        let log = store.events(&self.tenant().reader, app, filter, first_page("500"));
        let log = log.await.expect("the log is read").items.into_iter();
        log.map(|event| (event.external_id.clone(), event))
            .collect()
    }
}

/// Returns every text that identifies the person, as it appears in a database dump. Hashes are in
/// hexadecimal.
pub fn personal_texts() -> Vec<String> {
    let hash = |text: &[u8]| hex(Digest::of(text).as_bytes());
    let address = std::net::IpAddr::from(ADDRESS).to_string();
    let mut texts: Vec<String> = [
        DEVICE,
        PERSON,
        ALIAS,
        ADVERTISING,
        &address,
        "model-to-erase",
        "phone-to-erase",
        "zone/to_erase",
        "agent-to-erase",
        "referer-to-erase",
        "fbclid-to-erase",
        "fbp-to-erase",
        "utm-to-erase",
        "invite-to-erase",
        "idfv-to-erase",
        "token-to-erase",
        "params to erase",
        "page-to-erase",
    ]
    .map(str::to_lowercase)
    .to_vec();
    texts.extend(["e1", "f2", "d3"].map(|pair| pair.repeat(32)));
    texts.push(hash(b"address to erase"));
    texts.push(hash(b"advertising id to erase"));
    texts.push(hash(b"home to erase"));
    texts
}
