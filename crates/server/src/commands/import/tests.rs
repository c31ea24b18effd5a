use super::*;
use crate::testing;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::path::PathBuf;
use tributary_domain::vocabulary::id::EventId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::contract::sdk_fixtures::{Tenant, tenant};

/// A line of an export. All lines have the same internal id.
fn line(id: &str, amount: &str) -> String {
    let event = EventId::new(Timestamp::from_millis(1_700_000_000_000), [7; 10]);
    format!(
        r#"{{"id":"{event}","eventId":"{id}","name":"purchase","source":"sdk","environment":"live","timestampMs":1700000000000,"receivedAt":"2023-11-14T22:13:21.000Z","deviceId":"d1","userId":null,"revenue":{{"amount":{amount},"currency":"EUR","usd":1.5,"rateDate":"2023-11-14","counted":true,"reason":null}},"originalTransactionId":null,"sourceUrl":null,"duplicateOf":null,"attribution":null,"params":null,"platform":null,"country":null,"firstPayment":true,"install":false}}"#
    )
}

fn file(folder: &tempfile::TempDir, lines: &[String]) -> PathBuf {
    let path = folder.path().join("events.ndjson");
    std::fs::write(&path, lines.join("\n")).unwrap();
    path
}

async fn imported(tenant: &Tenant, file: PathBuf, mode: ImportMode) -> Vec<String> {
    let mut import = RunningImport::new(tenant.store.clone(), tenant.app.id, mode);
    let inputs = lines::open(&[file]).unwrap();
    import.run(inputs).await.unwrap();
    import.account.lines(mode)
}

#[tokio::test]
async fn an_account_says_what_became_of_each_line() {
    let (store, folder) = testing::store().await;
    let tenant = tenant(&store).await;
    let lines = [
        line("a", "1.25"),
        line("a", "1.25"),
        line("b", "2"),
        String::new(),
        line("c", "1").replace("\"live\"", "\"Live\""),
        "{".to_owned(),
        "x".repeat(tributary_api::EXPORT_LINE_BYTES_MAX + 1),
    ];
    let path = file(&folder, &lines);
    let name = path.display();
    let account = |new: u64, stored: u64, notes: &[&str]| {
        let mut account = vec![
            "lines read: 6".to_owned(),
            format!("new events: {new}"),
            format!("already stored: {stored}"),
            "rejected: 4".to_owned(),
        ];
        account.extend(notes.iter().map(|note| (*note).to_owned()));
        account.extend([
            format!("{name}:3: id: Another event has this id."),
            format!("{name}:5: environment: Must be one of live, test."),
            format!("{name}:6: line: Must be one JSON object per line."),
            format!("{name}:7: line: Must have at most 65536 bytes."),
        ]);
        account
    };
    let (revenue, dry) = (
        "revenue of new events: 1.25 EUR",
        "dry run: nothing was stored",
    );
    for (mode, expected) in [
        (ImportMode::DryRun, account(1, 1, &[revenue, dry])),
        (ImportMode::Write, account(1, 1, &[revenue])),
        (ImportMode::Write, account(0, 2, &[])),
    ] {
        assert_eq!(imported(&tenant, path.clone(), mode).await, expected);
    }
    assert_eq!(tenant.figures().await[0].1.revenue_micros, 1_500_000);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

/// The limit on a line applies to its decompressed bytes. A file may consist of several gzip members,
/// which divide it anywhere.
#[tokio::test]
async fn a_compressed_file_is_read_like_a_plain_one() {
    let (store, folder) = testing::store().await;
    let tenant = tenant(&store).await;
    let lines = [
        line("a", "1.25"),
        "x".repeat(tributary_api::EXPORT_LINE_BYTES_MAX + 1),
        "{".to_owned(),
        line("a", "1.25"),
    ];
    let plain = file(&folder, &lines);
    let expected = imported(&tenant, plain.clone(), ImportMode::DryRun).await;
    let counts = [
        "lines read: 4",
        "new events: 1",
        "already stored: 1",
        "rejected: 2",
    ];
    assert_eq!(expected[..4], counts);
    let bytes = std::fs::read(&plain).unwrap();
    let (first, second) = bytes.split_at(100);
    let members = [gzip(first), gzip(second)].concat();
    for compressed in [gzip(&bytes), members] {
        std::fs::write(&plain, compressed).unwrap();
        let account = imported(&tenant, plain.clone(), ImportMode::DryRun).await;
        assert_eq!(account, expected);
    }
    std::fs::write(&plain, []).unwrap();
    let empty = imported(&tenant, plain, ImportMode::DryRun).await;
    assert_eq!(empty[0], "lines read: 0");
}

/// The end of the file is not taken for the end of the export.
#[tokio::test]
async fn a_damaged_compressed_file_ends_the_import() {
    let (store, folder) = testing::store().await;
    let tenant = tenant(&store).await;
    let whole = gzip(format!("{}\n", line("a", "1.25")).as_bytes());
    for size in [2, whole.len() / 2, whole.len() - 1] {
        let path = folder.path().join("events.ndjson.gz");
        std::fs::write(&path, &whole[..size]).unwrap();
        let app = tenant.app.id;
        let mut import = RunningImport::new(tenant.store.clone(), app, ImportMode::Write);
        let error = import.run(lines::open(&[path]).unwrap()).await.unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("cannot decompress; "), "{error}");
    }
}

#[tokio::test]
async fn the_list_of_rejected_lines_is_bounded() {
    let (store, folder) = testing::store().await;
    let tenant = tenant(&store).await;
    let lines = vec!["{".to_owned(); account::REJECTIONS_SHOWN_MAX + 1];
    let account = imported(&tenant, file(&folder, &lines), ImportMode::Write).await;
    assert_eq!(account.len(), 4 + account::REJECTIONS_SHOWN_MAX + 1);
    assert_eq!(account.last().unwrap(), "and 1 more rejected lines");
}

/// Otherwise two batches would wait for each other's devices.
#[test]
fn all_events_of_a_device_are_in_one_lane() {
    let folder = tempfile::tempdir().unwrap();
    let lines: Vec<String> = (0..200)
        .map(|number| {
            let device = format!("\"device-{}\"", number % 20);
            line(&number.to_string(), "1").replace("\"d1\"", &device)
        })
        .collect();
    let (senders, mut receivers): (Vec<_>, Vec<_>) = (0..LANES).map(|_| mpsc::channel(1)).unzip();
    let mut reader = LineReader::new(AppId::from_bytes([9; 16]), senders);
    for input in lines::open(&[file(&folder, &lines)]).unwrap() {
        reader.read(input).unwrap();
    }
    reader.finish();
    let devices = receivers.iter_mut().map(|receiver| {
        let events = receiver.try_recv().unwrap().events;
        let devices: HashSet<_> = events.into_iter().map(|one| one.event.device).collect();
        devices
    });
    let devices: Vec<HashSet<_>> = devices.collect();
    assert_eq!(devices.iter().map(HashSet::len).sum::<usize>(), 20);
}

/// A lane that fails ends the import, and the account includes what was stored.
#[tokio::test]
async fn an_import_ends_with_the_error_of_a_lane() {
    let (store, folder) = testing::store().await;
    let tenant = tenant(&store).await;
    let path = file(&folder, &[line("a", "1"), "{".to_owned()]);
    let mut import = RunningImport::new(
        tenant.store.clone(),
        AppId::from_bytes([9; 16]),
        ImportMode::Write,
    );
    let error = import.run(lines::open(&[path]).unwrap()).await.unwrap_err();
    assert_eq!(error.to_string(), "App not found.");
    assert_eq!(import.account.read(), 1, "the line that cannot be read");
}

/// Lines of a dry run are compared across batches.
#[tokio::test]
async fn a_dry_run_finds_repeated_lines_in_later_batches() {
    let (store, folder) = testing::store().await;
    let tenant = tenant(&store).await;
    let repeated = vec![line("a", "1"); tributary_store::IMPORT_BATCH_EVENTS_MAX + 1];
    let account = imported(&tenant, file(&folder, &repeated), ImportMode::DryRun).await;
    assert_eq!(account[1], "new events: 1");
}

#[tokio::test]
async fn an_unknown_app_is_rejected() {
    let (store, _folder) = testing::store().await;
    tenant(&store).await;
    let error = find_owner(&*store, AppId::from_bytes([9; 16])).await;
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("no app has this id")
    );
}

#[test]
fn a_missing_file_is_found_before_anything_is_stored() {
    let error = lines::open(&["-".into(), "missing.ndjson".into()]).err();
    assert!(
        error
            .unwrap()
            .to_string()
            .contains("cannot open missing.ndjson")
    );
}
