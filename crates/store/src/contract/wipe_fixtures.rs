//! An app with the same data in both environments, for wiping.

use super::erasure_fixtures::{PERSON, billing_notification, device, person, person_proof};
use super::fixtures::{SharedStore, at, first_page, origin};
use super::reports::all_answers;
use super::sdk_fixtures::{Tenant, event, payment, tenant};
use crate::{
    BillingFigures, DeviceDetails, LogPart, NotificationOutcome, WIPE_TABLES, WipeBatch, WipeScope,
    run_wipe,
};
use tributary_domain::access::{Authorized, Environment, TestDataWipe};
use tributary_domain::billing::{NotificationMeaning, PaymentClaim};
use tributary_domain::click::Click;
use tributary_domain::device::{IdentityClaim, Platform};
use tributary_domain::event::sdk::{SdkEvent, SdkEventOutcome, SdkRequestContext};
use tributary_domain::event::{Event, EventFilter};
use tributary_domain::install::ConfigureCommand;
use tributary_domain::report::StatsRow;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::wipe::{WipeStep, WipedRows};

/// Device that was configured.
pub const PHONE: &str = "phone";
/// Device that only sent an event.
pub const STRANGER: &str = "stranger";
/// When the wipe begins, in seconds. Later than all data.
pub const WIPED_AT: i64 = 200_000;
/// Longer than any wipe here takes.
/// Tables that a small amount of data leaves empty.
const EMPTY_TABLES: [&str; 1] = ["rollup_values"];
/// Tables that only PostgreSQL has.
const POSTGRES_TABLES: [&str; 1] = ["due_work"];

/// An app with live and test data.
pub struct WipeScenario {
    /// Reads and writes live data.
    pub live: Tenant,
    /// Reads test data of the same app.
    pub test: Tenant,
}

/// What the lists and reports of an environment show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownData {
    /// Event log.
    pub events: Vec<Event>,
    /// Click log.
    pub clicks: Vec<Click>,
    /// The devices, if they are known.
    pub devices: Vec<Option<DeviceDetails>>,
    /// Counts of notifications.
    pub billing: Vec<BillingFigures>,
    /// Figures and cohorts.
    pub reports: Vec<StatsRow>,
}

/// Creates an app without data.
pub async fn wipe_scenario(store: &SharedStore) -> WipeScenario {
    let live = tenant(store).await;
    let test = Tenant {
        store: store.clone(),
        writer: live.writer.clone(),
        reader: live.test_reader(),
        app: live.app.clone(),
        link: live.link.clone(),
    };
    WipeScenario { live, test }
}

impl WipeScenario {
    /// Returns the operator, who may wipe test data.
    pub fn wiper(&self) -> Authorized<TestDataWipe> {
        Authorized::operator(self.live.writer.organization())
    }

    /// Wipes the test data.
    pub async fn wipe(&self) -> WipedRows {
        let (store, caller) = (self.live.store.as_ref(), self.wiper());
        let wiped = run_wipe(store, &caller, self.live.app.id, origin(WIPED_AT));
        wiped.await.expect("test data is wiped")
    }

    /// Runs one transaction of a wipe.
    pub async fn wipe_part(&self, step: WipeStep, second: i64) -> WipeBatch {
        let (store, caller) = (&self.live.store, self.wiper());
        let wiped = store.wipe_test_data(&caller, self.live.app.id, step, origin(second));
        wiped.await.expect("a part of the test data is wiped")
    }

    /// Records data of every kind: a tap, which is live, and for this environment a reported click,
    /// devices, a user, events on two days and subscriptions.
    pub async fn fill(&self, environment: Environment) {
        self.live.record_click(50).await;
        let mut opened = self.live.click(60);
        opened.environment = Some(environment);
        let mut command = ConfigureCommand {
            environment,
            app_link_click: Some(opened),
            erase_proof: Some(person_proof()),
            ad_services_token: Some("token".to_owned()),
            identity: IdentityClaim {
                user: Some(person(PERSON)),
                ..IdentityClaim::default()
            },
            ..self.live.configure(PHONE, 61)
        };
        command.traits.platform = Platform::Ios;
        let configured = self.live.call_configure(command).await;
        assert!(configured.is_first_open, "the device is new");
        let events = vec![
            event("open-1", "open", 70),
            payment("paid-1", "5", "USD", 80),
        ];
        self.send_new(environment, PHONE, 100, events).await;
        let later = vec![payment("paid-2", "5", "USD", 90_000)];
        self.send_new(environment, PHONE, 90_000, later).await;
        let lost = vec![event("lost-1", "open", 110)];
        self.send_new(environment, STRANGER, 120, lost).await;
        self.notify(environment).await;
    }

    /// Sends events. Returns their outcomes.
    pub async fn send(
        &self,
        environment: Environment,
        device: &str,
        second: i64,
        events: Vec<SdkEvent>,
    ) -> Vec<SdkEventOutcome> {
        let arrival = SdkRequestContext {
            environment,
            ..self.live.arrival(device, second)
        };
        let accepted = self.live.store.accept_sdk_events(arrival, events);
        accepted.await.expect("events are accepted")
    }

    async fn send_new(
        &self,
        environment: Environment,
        device: &str,
        second: i64,
        events: Vec<SdkEvent>,
    ) {
        let count = events.len();
        let outcomes = self.send(environment, device, second, events).await;
        assert_eq!(outcomes, vec![SdkEventOutcome::Accepted; count]);
    }

    /// Sends notifications about subscriptions of the device's user and of someone else.
    async fn notify(&self, environment: Environment) {
        let paid = NotificationMeaning::Payment(PaymentClaim::Start);
        let trial = NotificationMeaning::TrialStart;
        for (name, second, meaning) in [("sub-1", 200, paid), ("sub-2", 210, trial)] {
            // A provider uses each id once, whatever the environment.
            let id = format!("{}-{name}", environment.as_str());
            let mut sent = billing_notification(&self.live, &id, name, second, meaning);
            sent.content.environment = environment;
            if name == "sub-2" {
                sent.content.subscriber.people = vec![person("someone-else")];
            }
            let outcome = self.live.store.accept_notification(sent).await;
            let outcome = outcome.expect("a notification is stored");
            assert!(
                matches!(outcome, NotificationOutcome::Stored { .. }),
                "{outcome:?}"
            );
        }
    }
}

/// Reads all lists and reports of an environment.
pub async fn shown_data(of: &Tenant) -> ShownData {
    let (store, app, environment) = (&of.store, of.app.id, of.reader.environment());
    let page = first_page("500");
    let log = store.events(&of.reader, app, EventFilter::default(), page);
    let part = LogPart {
        after: None,
        from: at(-100_000),
        until: at(1_000_000),
        limit: 500,
    };
    let clicks = store.log_clicks(&of.reader, app, part);
    let mut devices = Vec::new();
    for key in [PHONE, STRANGER] {
        devices.push(store.device(&of.reader, app, device(key)).await.ok());
    }
    let days = Day::of(at(-100_000))..=Day::of(at(1_000_000));
    let billing = store.billing_figures(&of.reader, app, days).await;
    let mut billing = billing.expect("figures are read");
    billing.retain(|figures| figures.environment == environment);
    ShownData {
        events: log.await.expect("the log is read").items,
        clicks: clicks.await.expect("clicks are read"),
        devices,
        billing,
        reports: all_answers(of).await,
    }
}

/// Asserts that every table with rows of apps is listed, and that every listed table exists.
/// `columns` contains tables with their columns.
pub fn assert_app_tables_are_listed(columns: &[(String, String)]) {
    let is_listed = |name: &str| WIPE_TABLES.iter().any(|table| table.name == name);
    for (table, column) in columns {
        assert!(
            column != "app_id" || is_listed(table),
            "{table}: wipe the rows of the test environment, or exclude the table in WIPE_TABLES"
        );
    }
    for table in WIPE_TABLES {
        let has = |wanted: &str| {
            let mut columns = columns.iter();
            columns.any(|(name, column)| name == table.name && column == wanted)
        };
        let is_of_postgres = POSTGRES_TABLES.contains(&table.name);
        assert!(has("app_id") || is_of_postgres, "{} is unknown", table.name);
        if table.rows == WipeScope::Test {
            assert!(has("environment"), "{} has no environment", table.name);
        }
    }
}

/// Number of rows: table, environment (empty if the table has none), and number.
pub type RowCount = (String, String, i64);

/// Asserts that a wipe did what the list says, and that the data before it covers all tables.
pub fn assert_wiped_as_listed(before: &[RowCount], after: &[RowCount]) {
    let count = |rows: &[RowCount], table: &str, environment: &str| {
        let mut rows = rows.iter();
        let found = rows.find(|(name, of, _)| name == table && of == environment);
        found.map_or(0, |(.., count)| *count)
    };
    let test = Environment::Test.as_str();
    for table in WIPE_TABLES {
        let name = table.name;
        match table.rows {
            WipeScope::Test => {
                let is_covered = count(before, name, test) > 0 || EMPTY_TABLES.contains(&name);
                assert!(is_covered, "{name} has no test data to wipe");
                assert_eq!(count(after, name, test), 0, "{name}");
            }
            WipeScope::Merged => assert_eq!(count(after, name, ""), 0, "{name}"),
            WipeScope::Kept(_) => {
                let is_log = name == "audit_log";
                let added = i64::from(is_log);
                assert_eq!(
                    count(after, name, test),
                    count(before, name, test) + added,
                    "{name}"
                );
            }
        }
        for environment in [Environment::Live.as_str(), ""] {
            let (was, is) = (
                count(before, name, environment),
                count(after, name, environment),
            );
            assert!(was == is || table.rows == WipeScope::Merged, "{name}");
        }
    }
}
