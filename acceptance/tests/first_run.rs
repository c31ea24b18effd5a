//! The first start: open the setup link, create an account, an app and a link.

use reqwest::StatusCode;
use serde_json::json;
use std::time::Duration;
use tributary_testkit::{ServerProcess, TestDatabase, on_both_engines};

fn setup_link(text: &str) -> Option<String> {
    text.split_whitespace()
        .find(|word| word.contains("/setup/setup_"))
        .map(str::to_owned)
}

/// Submits the set-up form.
async fn submit(link: &str, base_url: &str, email: &str) -> (StatusCode, String) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let form = format!("email={email}&password=a+long+enough+password");
    let request = client
        .post(link)
        .header("origin", base_url)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form);
    let response = request.send().await.unwrap();
    (response.status(), response.text().await.unwrap())
}

fn key_in(page: &str) -> String {
    let at = page.find("ak_live_").expect("the page shows a key");
    page[at..]
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
        .collect()
}

on_both_engines! {
    async fn the_first_start_leads_to_an_account_an_app_and_a_link(engine: Engine) {
        let database = TestDatabase::new(engine).await;
        let server = ServerProcess::start(&database).await;
        let base_url = server.base_url().to_owned();
        let link = setup_link(&server.output()).expect("the first start prints a link");
        assert!(link.starts_with(&base_url), "{link}");

        let page = reqwest::get(&link).await.unwrap();
        assert_eq!(page.status(), 200);
        assert_eq!(page.headers()["referrer-policy"], "no-referrer");
        assert!(page.text().await.unwrap().contains("<form"));

        let (status, page) = submit(&link, &base_url, "you%40example.com").await;
        assert_eq!(status, 200, "{page}");
        let key = key_in(&page);
        let app = server.call("POST", "/api/v1/apps", &key, Some(json!({"name": "Runner"}))).await.expect(201);
        let path = format!("/api/v1/apps/{}/links", app.data()["id"].as_str().unwrap());
        let new_link = server.call("POST", &path, &key, Some(json!({"name": "Spring"}))).await.expect(201);
        assert!(new_link.data()["url"].as_str().unwrap().starts_with(&base_url));

        let (status, page) = submit(&link, &base_url, "other%40example.com").await;
        assert_eq!(status, 404, "a link works once: {page}");
        assert!(!server.log().contains("setup_"), "the link is printed, not logged");
        assert!(server.terminate().success(), "the server exits with 0 when it is terminated");

        let again = ServerProcess::start(&database).await;
        assert_eq!(setup_link(&again.output()), None, "no setup link once an account exists");
        again.call("GET", "/api/v1/apps", &key, None).await.expect(200);
    }

    async fn the_command_line_manages_a_running_server(engine: Engine) {
        let database = TestDatabase::new(engine).await;
        let server = ServerProcess::start(&database).await;
        let run = |arguments: &[&str]| ServerProcess::run(&database, arguments);
        let created = run(&["admin", "organization", "create", "Second"]).unwrap();
        assert!(created.starts_with("org_"), "{created}");
        let ambiguous = run(&["admin", "key", "create", "--permission", "full"]).unwrap_err();
        assert!(ambiguous.contains("--organization"), "{ambiguous}");
        let key = run(&["admin", "key", "create", "--permission", "read-only", "--organization", "Second", "--name", "CI"]);
        let key = key.unwrap();
        let full = run(&["admin", "key", "create", "--permission", "full", "--organization", "Second"]).unwrap();
        assert!(key.starts_with("ak_live_") && !key.contains(char::is_whitespace), "{key}");
        server.call("GET", "/api/v1/apps", &key, None).await.expect(200);
        server.call("POST", "/api/v1/apps", &key, Some(json!({"name": "X"}))).await.expect(403);

        let list = run(&["admin", "key", "list", "--organization", "Second"]).unwrap();
        assert!(list.contains("CI") && list.contains("read_only") && !list.contains(&key), "{list}");
        assert!(list.contains("owner command line"), "{list}");
        let app = server.call("POST", "/api/v1/apps", &full, Some(json!({"name": "X"}))).await.expect(201);
        let app = app.data()["id"].as_str().unwrap().to_owned();
        let limited = run(&["admin", "key", "create", "--permission", "full", "--organization", "Second", "--name", "Limited",
            "--app", &app, "--address", "127.0.0.0/8", "--expires", "2030-01-31"]);
        let limited = limited.unwrap();
        server.call("GET", &format!("/api/v1/apps/{app}"), &limited, None).await.expect(200);
        server.call("POST", "/api/v1/apps", &limited, Some(json!({"name": "X"}))).await.expect(403);
        let listed = run(&["admin", "key", "list", "--organization", "Second"]).unwrap();
        let shown = format!("expires 2030-01-31T00:00:00Z  apps {app}  addresses 127.0.0.0/8  Limited");
        assert!(listed.contains(&shown), "{listed}");
        let late = run(&["admin", "key", "create", "--permission", "full", "--organization", "Second", "--expires", "2001-01-01"]);
        assert!(late.unwrap_err().contains("expiresAt"));
        let id = list.split_whitespace().next().unwrap();
        run(&["admin", "key", "revoke", id]).unwrap();
        // A key that another process revokes stops within a second.
        tokio::time::sleep(Duration::from_secs(1)).await;
        server.call("GET", "/api/v1/apps", &key, None).await.expect(401);

        let invite = ["admin", "user", "create", "--email", "you@example.com", "--role", "viewer", "--organization", "Second"];
        let link = run(&invite).unwrap();
        let link = link.replace("http://127.0.0.1:8080", server.base_url());
        let (status, page) = submit(&link, server.base_url(), "another%40example.com").await;
        assert_eq!(status, 200, "{page}");
        let email = tributary_domain::access::person::Email::parse("you@example.com").unwrap();
        let store = database.open().await;
        assert_eq!(store.users_by_email(&email).await.unwrap().len(), 1, "the email address of the invitation is used");
        store.close().await;
        let unknown = run(&["admin", "key", "create", "--permission", "full", "--organization", "Third"]).unwrap_err();
        assert!(unknown.contains("admin organization list"), "{unknown}");
    }
}
