//! Every log line about a request carries its id, method, route and organization.

use serde_json::{Value, json};
use tributary_testkit::{ServerProcess, TestDatabase, TestResponse, on_both_engines};

fn id(answer: &TestResponse) -> String {
    answer.headers["x-request-id"].to_str().unwrap().to_owned()
}

/// Returns the error lines of a log.
fn errors(log: &str) -> Vec<&str> {
    log.lines().filter(|line| line.contains("ERROR")).collect()
}

on_both_engines! {
    async fn a_storage_error_is_logged_with_the_id_of_its_request(engine: Engine) {
        for format in ["text", "json"] {
            let database = TestDatabase::new(engine).await;
            // Lines must have their span at every log level.
            let settings = [("TRIBUTARY_LOG__FORMAT", format), ("TRIBUTARY_LOG__LEVEL", "error")];
            let server = ServerProcess::start_with(&database, &settings).await;
            let key = ServerProcess::full_key(&database);
            let app = server.call("POST", "/api/v1/apps", &key, Some(json!({"name": "Runner"}))).await.expect(201);
            let app = app.data()["id"].as_str().unwrap().to_owned();
            let organization = ServerProcess::run(&database, &["admin", "organization", "list"]).unwrap();
            let organization = organization.split_whitespace().next().unwrap();
            database.direct_connection().await.run("alter table links rename to links_renamed").await;

            let read = server.call("GET", &format!("/api/v1/apps/{app}/links"), &key, None).await.expect(503);
            let written = server.call("POST", &format!("/api/v1/apps/{app}/links"), &key, Some(json!({"name": "Spring"}))).await.expect(503);
            let log = server.log();
            for (answer, method) in [(&read, "GET"), (&written, "POST")] {
                let id = id(answer);
                let line = errors(&log).into_iter().find(|line| line.contains(&id));
                let line = line.unwrap_or_else(|| panic!("{id} is not in {log}"));
                let route = "/api/v1/apps/{appId}/links";
                if format == "json" {
                    let line: Value = serde_json::from_str(line).unwrap();
                    assert_eq!(line["span"]["request.id"], *id, "{line}");
                    assert_eq!(line["span"]["http.method"], method, "{line}");
                    assert_eq!(line["span"]["http.route"], route, "{line}");
                    assert_eq!(line["span"]["organization"], organization, "{line}");
                } else {
                    for part in [method, route, organization] {
                        assert!(line.contains(part), "{part}: {line}");
                    }
                }
                assert!(!line.contains(&app), "the route is a template: {line}");
            }
            assert!(errors(&log).len() >= 2 && !log.contains(&key));
        }
    }

    async fn log_lines_of_a_worker_name_the_worker(engine: Engine) {
        let database = TestDatabase::new(engine).await;
        let server = ServerProcess::start(&database).await;
        database.direct_connection().await.run("alter table queues rename to queues_renamed").await;
        let begun = std::time::Instant::now();
        let names_worker = |log: &str| log.lines().any(|line| line.contains("WARN") && line.contains("worker{worker=\"paused\"}"));
        while !names_worker(&server.log()) {
            assert!(begun.elapsed().as_secs() < 60, "{}", server.log());
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    }
}
