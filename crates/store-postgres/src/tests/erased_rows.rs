//! Erased personal data must not remain in any table.

use super::database::{Schema, client};
use std::sync::Arc;
use tributary_domain::attribution::ad_services::AdServices;
use tributary_domain::billing::{NotificationMeaning, PaymentClaim};
use tributary_store::contract::erasure_fixtures::{
    CLEARED_TABLES, DEVICE, PERSON, billing_notification, device, person_scenario, personal_texts,
    receipt,
};
use tributary_store::contract::fixtures::{at, rebuild};
use tributary_store::contract::personal_data_fixtures::{
    assert_erased_as_listed, assert_tables_are_listed,
};
use tributary_store::{Store, TokenOutcome};

/// Returns every row of every table as lower-case text, with the table's name.
async fn dump(schema: &Schema) -> Vec<(String, String)> {
    let client = client(&schema.url).await;
    // The rows of a partition are those of its table.
    let sql = "select tablename from pg_tables where schemaname = $1
                 and tablename not in (select relname from pg_class where relispartition)";
    let mut rows = Vec::new();
    for table in client.query(sql, &[&schema.name]).await.unwrap() {
        let table: String = table.get(0);
        let sql = format!("select lower(row_of::text) from {table} as row_of");
        for row in client.query(&sql, &[]).await.unwrap() {
            rows.push((table.clone(), row.get(0)));
        }
    }
    rows
}

async fn found(schema: &Schema) -> Vec<(String, String)> {
    let dump = dump(schema).await;
    let mut found = Vec::new();
    for text in personal_texts() {
        let places = dump.iter().filter(|(_, row)| row.contains(&text));
        found.extend(places.map(|(table, _)| (text.clone(), table.clone())));
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_table_holds_erased_data() {
    let schema = Schema::create().await;
    let store: Arc<dyn Store> = Arc::new(schema.open().await);
    let life = person_scenario(&store).await;
    let before = found(&schema).await;
    for text in personal_texts() {
        assert!(
            before.iter().any(|(known, _)| *known == text),
            "{text} is nowhere"
        );
    }
    let tokens = store.lease_ad_services_tokens(at(300), at(330), 10).await;
    life.erase(400).await;
    assert_eq!(found(&schema).await, []);
    // Neither the billing provider nor Apple's response brings the erased data back. Even locking
    // the device would insert a row with its id.
    let again = NotificationMeaning::Payment(PaymentClaim::Continuation);
    let mut renewal = billing_notification(life.tenant(), "renewed", "sub-1", 700_000, again);
    renewal.content.subscriber.device = Some(device(DEVICE));
    life.notify(&renewal).await;
    let cancellation = NotificationMeaning::Lifecycle("cancellation".to_owned());
    life.notify(&billing_notification(
        life.tenant(),
        "lonely-2",
        "sub-0",
        700_200,
        cancellation,
    ))
    .await;
    let (token, outcome) = (
        tokens.unwrap().remove(0),
        TokenOutcome::Final(AdServices::NotAttributed),
    );
    let settled = store
        .settle_ad_services_token(token, outcome, at(401))
        .await;
    assert!(!settled.unwrap());
    assert_eq!(found(&schema).await, []);
    // A notification without an event is stored without personal data, except for its body, which
    // retention deletes.
    life.notify(&receipt(life.tenant(), "later", "sub-4", 700_300))
        .await;
    let received = (PERSON.to_owned(), "notifications".to_owned());
    assert_eq!(found(&schema).await, [received]);
    let forgotten = store.forget_notifications(at(800_000), 100).await;
    assert!(forgotten.unwrap() > 0);
    assert_eq!(found(&schema).await, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_table_holds_expired_attribution_data() {
    let schema = Schema::create().await;
    let store: Arc<dyn Store> = Arc::new(schema.open().await);
    person_scenario(&store).await;
    let swept = store.forget_attributions(at(90_001), 10).await.unwrap();
    assert_eq!(swept.forgotten, 1);
    let mut left = found(&schema).await;
    left.retain(|(text, table)| {
        !text.eq_ignore_ascii_case(DEVICE) && CLEARED_TABLES.contains(&table.as_str())
    });
    assert_eq!(left, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_table_about_people_is_exported_and_erased() {
    let schema = Schema::create().await;
    let store: Arc<dyn Store> = Arc::new(schema.open().await);
    let life = person_scenario(&store).await;
    // Merges the counts, which stores the device's cohort.
    rebuild(&store).await;
    let sql = "select table_name::text, column_name::text, data_type = 'text'
               from information_schema.columns where table_schema = $1
                 and table_name not in (select relname from pg_class where relispartition)";
    let client = client(&schema.url).await;
    let rows = client.query(sql, &[&schema.name]).await.unwrap();
    let columns: Vec<(String, String, bool)> = rows
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect();
    assert_tables_are_listed(&columns);
    let before = dump(&schema).await;
    let pseudonym = life.erase(400).await;
    let after = dump(&schema).await;
    assert_erased_as_listed(&before, &after, pseudonym.as_str());
}
