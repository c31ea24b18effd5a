//! The hash chain of the audit log: the export, and `tributary audit` beside a running server. The
//! rules are tested in `crates/store/src/contract/audit_chain.rs`.

use crate::command_line::tributary;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tributary_testkit::{TestDatabase, TestServer, on_both_engines};

/// Runs `tributary audit`. Returns the exit code and the output.
fn audit(server: &TestServer, arguments: &[&str]) -> (i32, String) {
    let (url, folder) = (server.database.url(), server.database.folder());
    let environment = [
        ("TRIBUTARY_DATABASE_URL", url.as_str()),
        ("TRIBUTARY_DATA_DIR", folder.to_str().unwrap()),
        ("TRIBUTARY_SECRET_KEY", &"07".repeat(32)),
    ];
    let mut line = vec!["audit"];
    line.extend_from_slice(arguments);
    let output = tokio::task::block_in_place(|| tributary(&line, &environment));
    let text = String::from_utf8(output.stdout).unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code().unwrap();
    assert!(code < 2, "{text}{error}");
    (code, text)
}

/// Changes the name of an app this many times.
async fn rename(server: &TestServer, key: &str, app: &str, times: usize) {
    for number in 0..times {
        server
            .patch(app, key, json!({"name": format!("App \"{number}\" ö")}))
            .await
            .expect(200);
    }
}

/// Verifies an export the way OPERATIONS.md explains it.
fn hashes(lines: &str) -> Vec<(u64, String)> {
    let mut previous = None;
    let check = |line: &str| {
        let (object, hash) = line.rsplit_once(",\"hash\":\"").unwrap();
        let hash = hash.strip_suffix("\"}").unwrap().to_owned();
        let digest = Sha256::digest(format!("{object}}}"));
        let computed = digest
            .iter()
            .fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        assert_eq!(computed, hash, "{line}");
        let entry: Value = line.parse().unwrap();
        if let Some(previous) = previous.replace(hash.clone()) {
            assert_eq!(entry["previousHash"], *previous);
        }
        (entry["sequence"].as_u64().unwrap(), hash)
    };
    lines.lines().map(check).collect()
}

on_both_engines! {
    async fn an_export_can_be_verified_by_others(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let app = server.app(&key).await;
        rename(&server, &key, &app, 3).await;
        let answer = server.get("/api/v1/audit-log/export", &key).await.expect(200);
        assert_eq!(answer.header("content-type").unwrap(), "application/x-ndjson");
        let whole = hashes(&answer.text);
        assert_eq!(whole[0].0, 1);
        assert!(whole.len() > 4, "{whole:?}");
        let last: Value = answer.text.lines().last().unwrap().parse().unwrap();
        assert_eq!(last["action"], "audit_log.exported");
        let path = format!("/api/v1/audit-log/export?afterSequence={}", whole[1].0);
        let rest = server.get(&path, &key).await.expect(200).text;
        assert_eq!(hashes(&rest)[..whole.len() - 2], whole[2..]);
        let faulty = server.get("/api/v1/audit-log/export?afterSequence=x", &key).await.expect(422);
        assert_eq!(faulty.code(), "validation_failed");
    }

    async fn the_command_finds_a_removed_entry(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let app = server.app(&key).await;
        rename(&server, &key, &app, 5).await;
        let (code, text) = audit(&server, &["verify"]);
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("entries verified (1 to "), "{text}");

        let (code, export) = audit(&server, &["export"]);
        assert_eq!(code, 0);
        let exported = hashes(&export);
        let folder = TestDatabase::temp_folder();
        let file = folder.path().join("audit.ndjson");
        let path = file.to_str().unwrap();
        std::fs::write(&file, &export).unwrap();
        let (code, text) = audit(&server, &["verify", "--file", path]);
        assert!(code == 0 && text.contains(&format!("{} entries verified", exported.len())), "{text}");
        std::fs::write(&file, export.replacen("App \\\"3\\\"", "App", 1)).unwrap();
        let (code, text) = audit(&server, &["verify", "--file", path]);
        assert!(code == 1 && text.contains("BROKEN: entry"), "{text}");

        let direct = server.database.direct_connection().await;
        direct.run("delete from audit_log where sequence = 3").await;
        let (code, text) = audit(&server, &["verify"]);
        assert!(code == 1 && text.contains("BROKEN: entry 3 is missing"), "{text}");
        let (code, text) = audit(&server, &["verify", "--json"]);
        assert_eq!(code, 1);
        let report: Value = text.parse().unwrap();
        let broken = &report["organizations"][0]["broken"];
        assert_eq!((&broken["kind"], &broken["sequence"]), (&json!("missing"), &json!(3)));
    }
}
