//! Random people with facts from every source, and their exports as documents.

use super::erasure_fixtures::{
    DEVICE, PersonScenario, billing_notification, device, person, person_scenario,
};
use super::fixtures::{CLIENT, SharedStore, at, new_key, origin, rebuild, unique};
use super::sdk_fixtures::{Tenant, event, payment};
use crate::StoreError;
use crate::personal_data::{
    ErasedRows, PERSONAL_TABLES, PersonDocument, PersonExport, SECTIONS, is_personal_column,
};
use serde_json::Value;
use tributary_domain::access::{Authorized, Environment, PeopleErase, PeopleExport, Permission};
use tributary_domain::access::{Scope, authorize};
use tributary_domain::billing::{NotificationMeaning, PaymentClaim};
use tributary_domain::click::token::ClickTokens;
use tributary_domain::device::IdentityClaim;
use tributary_domain::event::web::WebEvent;
use tributary_domain::keyring::Keyring;
use tributary_domain::personal_data::DataSubject;
use tributary_domain::vocabulary::id::EventId;

/// The people.
pub const NAMES: [&str; 5] = ["ada", "ben", "cleo", "dora", "emil"];

/// A finished document.
#[derive(Debug)]
pub struct ExportedDocument {
    /// The document as it was written.
    pub text: String,
    /// The parsed document.
    pub json: Value,
}

impl ExportedDocument {
    /// Returns a section's items.
    pub fn items(&self, section: &str) -> &[Value] {
        let items = self.json["data"][section]["items"].as_array();
        items.map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns one field of a section's items.
    pub fn ids(&self, section: &str, field: &str) -> Vec<String> {
        let items = self.items(section).iter();
        let texts = items.map(|one| one[field].as_str().unwrap_or_default().to_owned());
        texts.collect()
    }

    /// Returns the part that is for the person.
    pub fn data(&self) -> String {
        self.json["data"].to_string()
    }

    /// Returns all sections, without the head.
    pub fn sections(&self) -> Vec<&[Value]> {
        SECTIONS.iter().map(|one| self.items(one.name)).collect()
    }
}

fn authorized<S: Scope>(tenant: &Tenant, environment: Environment) -> Authorized<S> {
    let mut key = new_key(tenant.writer.organization()).key;
    key.permission = Permission::Full;
    key.environment = environment;
    authorize(&key, CLIENT).expect("a full key")
}

/// Returns a caller that may export people in this environment.
pub fn exporter(tenant: &Tenant, environment: Environment) -> Authorized<PeopleExport> {
    authorized(tenant, environment)
}

/// Returns a caller that may erase people.
pub fn eraser(tenant: &Tenant) -> Authorized<PeopleErase> {
    authorized(tenant, Environment::Live)
}

/// Reads the rest of an export.
pub async fn read_document(
    store: &SharedStore,
    mut export: PersonExport,
) -> Result<ExportedDocument, StoreError> {
    let mut document = PersonDocument::new(ClickTokens::new(&Keyring::new([7; 32])));
    let mut bytes = document.begin(&export);
    while let Some(part) = export.next(store.as_ref()).await? {
        bytes.extend(document.part(part));
    }
    bytes.extend(document.finish(&export, true));
    let text = String::from_utf8(bytes).expect("text");
    let json = serde_json::from_str(&text).expect("a JSON document");
    Ok(ExportedDocument { text, json })
}

/// Exports a person's data as the operator.
pub async fn export(tenant: &Tenant, subject: DataSubject) -> Result<ExportedDocument, StoreError> {
    let caller = Authorized::operator(tenant.writer.organization());
    let (store, of) = (&tenant.store, (tenant.app.id, subject));
    let begun = PersonExport::begin(store.as_ref(), &caller, of, origin(700)).await?;
    read_document(store, begun).await
}

/// One person's facts: the ids by which the document must name them.
#[derive(Default)]
struct Facts {
    events: Vec<String>,
    notifications: Vec<String>,
}

/// Several people of one app, with random facts.
pub struct RandomPeople {
    scenario: PersonScenario,
    facts: Vec<Facts>,
    random: u64,
}

impl RandomPeople {
    /// Creates people with random facts in a random order.
    pub async fn create(store: &SharedStore, seed: u64) -> Self {
        let mut people = Self {
            scenario: person_scenario(store).await,
            facts: NAMES.iter().map(|_| Facts::default()).collect(),
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        };
        for place in 0..NAMES.len() {
            people.arrive(place).await;
        }
        for step in 0..40 {
            let place = people.below(NAMES.len());
            people.act(place, step).await;
        }
        // Merges the counts, as a worker does, which stores the devices' cohorts.
        rebuild(store).await;
        people
    }

    /// Returns the app's tenant.
    pub const fn tenant(&self) -> &Tenant {
        self.scenario.tenant()
    }

    /// Returns a person's device id.
    pub fn device(&self, name: &str) -> String {
        format!("phone-of-{name}")
    }

    /// Returns a person's user id.
    pub fn user(&self, name: &str) -> String {
        format!("user-{name}")
    }

    /// Returns a number below a limit (xorshift).
    fn below(&mut self, limit: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random >> 33).unwrap_or_default() % limit
    }

    /// A click, an install and a user. Some people install before they have a user, and some only
    /// pay later.
    async fn arrive(&mut self, place: usize) {
        let name = NAMES[place];
        let second = 1_000 + 10 * i64::try_from(place).unwrap_or_default();
        let tenant = self.scenario.tenant();
        let mut click = tenant.click(second);
        click.captured.utm.term = Some(format!("term-{name}"));
        click.user_agent = Some(format!("agent-{name}"));
        let recorded = tenant.store.record_click(click.clone()).await;
        recorded.expect("a click is recorded");
        let key = self.device(name);
        let mut command = tenant.configure_with_click(&key, &click, second + 1);
        command.traits.model = Some(format!("model-{name}"));
        command.identity.user = Some(person(&self.user(name)));
        tenant.call_configure(command).await;
        let web = WebEvent {
            device: device(&key),
            id: EventId::new(at(second + 100), unique()),
            click_text: click.id.to_string(),
            click: Some(click.id),
            occurred_at: at(second + 100),
            received_at: at(second + 101),
            ..self.scenario.web_purchase(&format!("web-{name}"), "3")
        };
        let accepted = tenant.store.accept_web_event(web).await;
        accepted.expect("an event is accepted");
        self.facts[place].events.push(format!("web-{name}"));
    }

    /// One random fact.
    async fn act(&mut self, place: usize, step: i64) {
        let (name, second) = (NAMES[place], 2_000 + 50 * step);
        let (key, user) = (self.device(name), self.user(name));
        let id = format!("fact-{name}-{step}");
        let kind = self.below(5);
        let tenant = self.scenario.tenant();
        let store = &tenant.store;
        match kind {
            0 | 1 => {
                let mut sent = event(&id, "level_up", second);
                sent.params = Some(format!("{{\"marker\":\"params-{name}\"}}"));
                let accepted = store.accept_sdk_events(tenant.arrival(&key, second), vec![sent]);
                accepted.await.expect("an event is accepted");
                self.facts[place].events.push(id);
            }
            2 => {
                let paid = vec![payment(&id, "5", "USD", second)];
                let accepted = store.accept_sdk_events(tenant.arrival(&key, second), paid);
                accepted.await.expect("an event is accepted");
                self.facts[place].events.push(id);
            }
            3 => {
                let claim = PaymentClaim::OneOff;
                let chain = format!("chain-{name}-{step}");
                let meaning = NotificationMeaning::Payment(claim);
                let mut one = billing_notification(tenant, &id, &chain, second, meaning);
                one.content.subscriber.people = vec![person(&user)];
                one.body = format!("{{\"user\":\"{user}\"}}");
                self.scenario.notify(&one).await;
                self.facts[place].events.push(id.clone());
                self.facts[place].notifications.push(id);
            }
            _ => {
                let claim = IdentityClaim {
                    user: Some(person(&user)),
                    ..IdentityClaim::default()
                };
                let (app, live) = (tenant.app.id, Environment::Live);
                let claimed = store.identify(app, live, device(&key), claim, at(second));
                claimed.await.expect("a claim is stored");
            }
        }
    }

    /// Asserts that a document contains each fact of a person once, and nothing of the others.
    pub fn assert_facts_of(&self, name: &str, document: &ExportedDocument) {
        for (one, facts) in NAMES.into_iter().zip(&self.facts) {
            if one != name {
                // Every id and marker of a person ends with the name.
                assert!(!document.text.contains(&format!("-{one}")), "{name}: {one}");
                continue;
            }
            let events = document.items("events").iter();
            let sent = events.filter(|one| one["isInstall"] == false);
            let sent = sent.map(|one| one["eventId"].as_str().unwrap_or_default().to_owned());
            assert_same_ids(&sent.collect::<Vec<_>>(), &facts.events, name);
            let subscriptions = document.items("subscriptions").iter();
            let found = subscriptions.filter_map(|one| one["notifications"].as_array().cloned());
            let found = found.flatten();
            let id = |one: Value| {
                one["notificationId"]
                    .as_str()
                    .unwrap_or_default()
                    .to_owned()
            };
            let found: Vec<String> = found.map(id).collect();
            assert_same_ids(&found, &facts.notifications, name);
            let clicks = document.items("clicks");
            assert_eq!(clicks.len(), 1, "{name}");
            assert_eq!(clicks[0]["userAgent"], format!("agent-{name}"));
            assert_eq!(document.ids("userLinks", "userId"), [self.user(name)]);
        }
    }
}

fn assert_same_ids(found: &[String], expected: &[String], name: &str) {
    let sorted = |ids: &[String]| {
        let mut ids = ids.to_vec();
        ids.sort();
        ids
    };
    assert_eq!(sorted(found), sorted(expected), "{name}");
}

/// Asserts that every table with a column about people is listed, and that every listed table exists.
/// `columns` contains table, column and whether the column is a text.
pub fn assert_tables_are_listed(columns: &[(String, String, bool)]) {
    let listed: Vec<&str> = PERSONAL_TABLES.iter().map(|table| table.name).collect();
    for (table, column, is_text) in columns {
        assert!(
            !is_personal_column(column, *is_text) || listed.contains(&table.as_str()),
            "{table}.{column}: export and erase the table, or exclude it in PERSONAL_TABLES"
        );
    }
    for name in listed {
        let exists = columns.iter().any(|(table, ..)| table == name);
        assert!(exists, "{name} does not exist");
    }
}

/// Asserts that an erasure did what the list says. Contains each table's values in lower case, before
/// and after the erasure of the person of [`person_scenario`].
pub fn assert_erased_as_listed(
    before: &[(String, String)],
    after: &[(String, String)],
    pseudonym: &str,
) {
    let device = DEVICE.to_lowercase();
    let contains = |rows: &[(String, String)], table: &str, text: &str| {
        let mut rows = rows.iter().filter(|(name, _)| name == table);
        rows.any(|(_, value)| value.contains(text))
    };
    for table in PERSONAL_TABLES {
        let name = table.name;
        if matches!(table.erased, ErasedRows::Kept(_)) {
            continue;
        }
        assert!(
            contains(before, name, &device),
            "{name} does not name the device"
        );
        assert!(
            !contains(after, name, &device),
            "{name} still names the device"
        );
        let is_renamed = contains(after, name, pseudonym);
        assert_eq!(is_renamed, table.erased == ErasedRows::Renamed, "{name}");
    }
}
