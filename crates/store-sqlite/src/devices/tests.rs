//! Erased personal data must not remain in any table.

use crate::SqliteStore;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::sync::Arc;
use tributary_domain::billing::{NotificationMeaning, PaymentClaim};
use tributary_store::Store;
use tributary_store::contract::erasure_fixtures::{
    CLEARED_TABLES, DEVICE, PERSON, PersonScenario, billing_notification, device, person_scenario,
    personal_texts, receipt,
};
use tributary_store::contract::fixtures::{at, rebuild};
use tributary_store::contract::personal_data_fixtures::{
    assert_erased_as_listed, assert_tables_are_listed,
};

/// Returns every value in every row in lower case, with its table and column.
fn dump(path: &Path) -> Vec<(String, String)> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = Connection::open_with_flags(path, flags).unwrap();
    let tables: Vec<String> = connection
        .prepare("select name from sqlite_schema where type = 'table'")
        .unwrap()
        .query_map((), |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let mut values = Vec::new();
    for table in tables {
        let mut statement = connection
            .prepare(&format!("select * from {table}"))
            .unwrap();
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut rows = statement.query(()).unwrap();
        while let Some(row) = rows.next().unwrap() {
            for (place, column) in columns.iter().enumerate() {
                let value = row.get_ref(place).unwrap();
                let text = match value.as_blob() {
                    Ok(bytes) => tributary_domain::vocabulary::digest::hex(bytes),
                    Err(_) => value
                        .as_str_or_null()
                        .unwrap_or(None)
                        .unwrap_or_default()
                        .to_owned(),
                };
                values.push((format!("{table}.{column}"), text.to_ascii_lowercase()));
            }
        }
    }
    values
}

fn found(path: &Path) -> Vec<(String, String)> {
    let dump = dump(path);
    let mut found = Vec::new();
    for text in personal_texts() {
        let places = dump.iter().filter(|(_, value)| value.contains(&text));
        found.extend(places.map(|(place, _)| (text.clone(), place.clone())));
    }
    found
}

/// Finds the texts in the raw bytes of the files in a folder: in upper or lower case, or as the
/// bytes of a hash.
fn found_raw(folder: &Path) -> Vec<String> {
    let files: Vec<Vec<u8>> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            std::fs::read(entry.unwrap().path())
                .unwrap()
                .to_ascii_lowercase()
        })
        .collect();
    let holds = |bytes: &[u8]| {
        let bytes = bytes.to_ascii_lowercase();
        files
            .iter()
            .any(|file| file.windows(bytes.len()).any(|part| part == bytes))
    };
    let mut texts = personal_texts();
    texts.retain(|text| {
        let digest = tributary_domain::vocabulary::digest::from_hex(text);
        let is_hash = text.len() == 64;
        holds(text.as_bytes()) || (is_hash && digest.is_some_and(|bytes| holds(&bytes)))
    });
    texts
}

/// Waits until the WAL is truncated.
async fn wait_until_erased(folder: &Path) {
    let begun = std::time::Instant::now();
    while begun.elapsed() < std::time::Duration::from_secs(20) {
        if found_raw(folder).is_empty() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(found_raw(folder), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_file_contains_erased_data() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tributary.db");
    let opened = path.clone();
    let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&opened)).await;
    let store: Arc<dyn Store> = Arc::new(opened.unwrap().unwrap());
    let life = person_scenario(&store).await;
    assert!(found_raw(folder.path()).len() > 10);
    // A long read keeps the WAL: the erasure succeeds, and the bytes disappear when the read ends.
    let reader = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let held = reader.unchecked_transaction().unwrap();
    let read = |sql| reader.query_row(sql, (), |row| row.get::<_, i64>(0));
    assert!(read("select count(*) from events").unwrap() > 0);
    life.erase(400).await;
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    assert!(
        !found_raw(folder.path()).is_empty(),
        "the reader's snapshot keeps the WAL"
    );
    held.finish().unwrap();
    wait_until_erased(folder.path()).await;
    drop(reader);
    store.close().await;
    assert_eq!(found_raw(folder.path()), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clean_stop_leaves_all_data_in_the_database_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tributary.db");
    let opened = path.clone();
    let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&opened)).await;
    let store: Arc<dyn Store> = Arc::new(opened.unwrap().unwrap());
    let _life = person_scenario(&store).await;
    let before = dump(&path);
    store.close().await;
    assert!(!crate::leftover_wal::wal_path(&path).exists());
    let copy = folder.path().join("copy.db");
    std::fs::copy(&path, &copy).unwrap();
    assert!(std::fs::metadata(&copy).unwrap().len() > 100_000);
    assert_eq!(dump(&copy), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_table_holds_erased_data() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tributary.db");
    let opened = path.clone();
    let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&opened)).await;
    let store: Arc<dyn Store> = Arc::new(opened.unwrap().unwrap());
    let life = person_scenario(&store).await;
    let before = found(&path);
    for text in personal_texts() {
        assert!(
            before.iter().any(|(known, _)| *known == text),
            "{text} is nowhere"
        );
    }
    life.erase(400).await;
    assert_eq!(found(&path), []);
    // A billing notification does not bring the erased data back.
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
    assert_eq!(found(&path), []);
    // A notification without an event is stored without personal data, except for its body, which
    // retention deletes.
    life.notify(&receipt(life.tenant(), "later", "sub-4", 700_300))
        .await;
    let received = (PERSON.to_owned(), "notifications.body".to_owned());
    assert_eq!(found(&path), [received]);
    let forgotten = store.forget_notifications(at(800_000), 100).await;
    assert!(forgotten.unwrap() > 0);
    assert_eq!(found(&path), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_table_holds_expired_attribution_data() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tributary.db");
    let opened = path.clone();
    let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&opened)).await;
    let store: Arc<dyn Store> = Arc::new(opened.unwrap().unwrap());
    person_scenario(&store).await;
    let swept = store.forget_attributions(at(90_001), 10).await.unwrap();
    assert_eq!(swept.forgotten, 1);
    let left: Vec<_> = found(&path)
        .into_iter()
        .filter(|(text, place)| {
            let (table, _) = place.split_once('.').unwrap();
            !text.eq_ignore_ascii_case(DEVICE) && CLEARED_TABLES.contains(&table)
        })
        .collect();
    assert_eq!(left, []);
}

/// A database with a person, and a folder that must live as long as it.
async fn open_with_person() -> (tempfile::TempDir, std::path::PathBuf, PersonScenario) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tributary.db");
    let opened = path.clone();
    let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&opened)).await;
    let store: Arc<dyn Store> = Arc::new(opened.unwrap().unwrap());
    let life = person_scenario(&store).await;
    // Merges the counts, which stores the device's cohort.
    rebuild(&store).await;
    (folder, path, life)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_table_about_people_is_exported_and_erased() {
    let (_folder, path, life) = open_with_person().await;
    let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let columns: Vec<(String, String, bool)> = connection
        .prepare(
            "select tables.name, columns.name, columns.type = 'TEXT'
             from sqlite_schema as tables, pragma_table_info(tables.name) as columns
             where tables.type = 'table'",
        )
        .unwrap()
        .query_map((), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_tables_are_listed(&columns);
    let by_table = |values: Vec<(String, String)>| {
        let table = |place: String| place.split('.').next().unwrap_or_default().to_owned();
        let values = values.into_iter();
        values
            .map(|(place, value)| (table(place), value))
            .collect::<Vec<_>>()
    };
    let before = by_table(dump(&path));
    let pseudonym = life.erase(400).await;
    assert_erased_as_listed(&before, &by_table(dump(&path)), pseudonym.as_str());
}
