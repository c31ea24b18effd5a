//! `tributary import` beside a running server. The rules are tested in
//! `crates/store/src/contract/imports.rs`.

use super::track::SdkFixture;
use crate::command_line::tributary;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use std::io::Write as _;
use std::path::Path;
use tributary_testkit::{TestDatabase, TestServer, on_both_engines};

/// Start time of every test clock, 2026-01-01T00:00:00Z.
const START: i64 = 1_767_225_600_000;

/// Imports a file into an app, given by its path. Returns the exit code and the account.
fn import(server: &TestServer, app: &str, arguments: &[&str], file: &Path) -> (i32, String) {
    let (url, folder) = (server.database.url(), server.database.folder());
    let environment = [
        ("TRIBUTARY_DATABASE_URL", url.as_str()),
        ("TRIBUTARY_DATA_DIR", folder.to_str().unwrap()),
        ("TRIBUTARY_SECRET_KEY", &"07".repeat(32)),
    ];
    let id = app.rsplit('/').next().unwrap();
    let mut line = vec!["import", "--app", id];
    line.extend_from_slice(arguments);
    line.push(file.to_str().unwrap());
    let output = tokio::task::block_in_place(|| tributary(&line, &environment));
    let text = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code().unwrap();
    assert!(code < 2, "{text}{error}");
    (code, text)
}

impl SdkFixture {
    async fn exported(&self, app: &str) -> String {
        let path = format!("{app}/export?kind=events&format=ndjson");
        self.server.get(&path, &self.key).await.expect(200).text
    }
}

on_both_engines! {
    async fn an_export_is_imported_once(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        sdk.configure("d1", json!({})).await;
        let payment = |id: &str, amount: &str, days: i64| json!({
            "eventId": id, "name": "purchase", "timestampMs": START - days * 86_400_000,
            "revenue": amount, "currency": "EUR", "params": {"sku": id, "n": 1},
        });
        sdk.send("d1", json!([payment("a", "9.99", 0), payment("b", "0.5", 3)])).await;
        sdk.send("d2", json!([{"eventId": "c", "name": "install", "timestampMs": START}])).await;
        let lines = sdk.exported(&sdk.app).await;
        assert_eq!(lines.lines().count(), 4);

        let copy = sdk.server.app(&sdk.key).await;
        let folder = TestDatabase::temp_folder();
        let file = folder.path().join("events.ndjson");
        std::fs::write(&file, &lines).unwrap();
        let account = |new: u32, stored: u32| {
            format!("lines read: 4\nnew events: {new}\nalready stored: {stored}\nrejected: 0\n")
        };
        let revenue = "revenue of new events: 10.49 EUR\n";
        let dry = "dry run: nothing was stored\n";
        let planned = import(&sdk.server, &copy, &["--dry-run"], &file);
        assert_eq!(planned, (0, format!("{}{revenue}{dry}", account(4, 0))));
        assert_eq!(sdk.exported(&copy).await, "");
        let imported = import(&sdk.server, &copy, &[], &file);
        assert_eq!(imported, (0, format!("{}{revenue}", account(4, 0))));
        assert_eq!(import(&sdk.server, &copy, &[], &file), (0, account(0, 4)));
        let compressed = folder.path().join("events.ndjson.gz");
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(lines.as_bytes()).unwrap();
        std::fs::write(&compressed, encoder.finish().unwrap()).unwrap();
        assert_eq!(import(&sdk.server, &copy, &[], &compressed), (0, account(0, 4)));

        assert_eq!(sdk.exported(&copy).await, lines);
        for report in [
            "stats?from=2025-12-01&to=2026-01-02&groupBy=day,network",
            "stats?from=2025-12-01&to=2026-01-02&groupBy=event",
            "cohorts?from=2025-12-01&to=2026-01-02",
        ] {
            let read = async |app: &str| {
                let path = format!("{app}/{report}");
                sdk.server.get(&path, &sdk.key).await.expect(200).data()
            };
            assert_eq!(read(&copy).await, read(&sdk.app).await, "{report}");
        }

        let faulty = lines.replacen("\"counted\":true", "\"counted\":false", 1);
        std::fs::write(&file, faulty).unwrap();
        let (code, text) = import(&sdk.server, &copy, &[], &file);
        assert!(code == 1 && text.contains("rejected: 1\n"), "{text}");
        let place = format!("{}:1: revenue.counted: Must be true", file.display());
        assert!(text.contains(&place), "{text}");
    }
}
