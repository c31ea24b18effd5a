//! Exporting everything about a person: `GET …/devices/{deviceId}/data`, `GET …/users/{userId}/data`,
//! and the files in the dashboard.

use super::track::SdkFixture;
use reqwest::Method;
use serde_json::{Value, json};
use tributary_domain::access::person::Role;
use tributary_domain::access::{Environment, Permission};
use tributary_testkit::{TestServer, on_both_engines};

const DEVICE: &str = "6f9619ff-8b86-4011-b42d-00c04fc964ff";
const OTHER: &str = "0a9619ff-8b86-4011-b42d-00c04fc96400";
const HASH: &str = "0c7e6a405862e402eb76a70f8a26fc732d07c32931e9fae9ab1582911d2e8a3b";
/// More than one part of the stream.
const EVENTS: usize = 620;
/// Most events per request of the SDK.
const BATCH: usize = 100;

/// Creates a user who came from an ad and has more events than fit into one part, and another one.
async fn create_users(sdk: &SdkFixture) {
    sdk.link("spring", json!({"network": "network_a"})).await;
    let token = sdk.tap("/c/spring?fbclid=f1&invite=me").await;
    sdk.configure(DEVICE, json!({"arClickId": token, "userId": "user/42"}))
        .await;
    let person = json!({"deviceId": DEVICE, "matching": {"email": HASH}});
    sdk.call("identify", &sdk.live, &person).await.expect(204);
    sdk.configure(OTHER, json!({"userId": "neighbour"})).await;
    sdk.send(OTHER, json!([{"eventId": "other-1", "name": "sign_up"}]))
        .await;
    let numbers: Vec<usize> = (0..EVENTS).collect();
    for part in numbers.chunks(BATCH) {
        let event = |number: &usize| json!({"eventId": format!("e{number}"), "name": "level_up"});
        let events: Vec<Value> = part.iter().map(event).collect();
        sdk.send(DEVICE, json!(events)).await;
    }
}

fn event_ids(document: &Value) -> Vec<&str> {
    let items = document["data"]["events"]["items"].as_array().unwrap();
    let ids = items.iter().filter_map(|one| one["eventId"].as_str());
    // The service itself gave the install its id.
    ids.filter(|id| !id.starts_with("evt_")).collect()
}

on_both_engines! {
    async fn everything_about_a_person_is_one_document(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        create_users(&sdk).await;
        let path = format!("{}/devices/{DEVICE}/data", sdk.app);
        let answer = sdk.server.get(&path, &sdk.key).await.expect(200);
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("content-disposition"), Some("attachment; filename=\"personal-data.json\""));
        let document = answer.json();
        let data = &document["data"];
        assert_eq!(data["subject"]["deviceId"], DEVICE);
        assert_eq!(event_ids(&document), (0..EVENTS).map(|number| format!("e{number}")).collect::<Vec<_>>());
        assert_eq!(data["eventCount"], data["events"]["items"].as_array().unwrap().len());
        assert_eq!(data["devices"]["items"][0]["hashes"]["email"], HASH);
        assert_eq!(data["devices"]["items"][0]["userId"], "user/42");
        assert_eq!(data["clicks"]["items"].as_array().unwrap().len(), 1);
        assert!(data["clicks"]["items"][0]["ipAddress"].is_string());
        assert!(answer.text.contains("\"invite\":\"me\"") && !answer.text.contains("other-1"));
        for section in ["devices", "userLinks", "clicks", "subscriptions", "events"] {
            for about in ["contents", "source", "retention"] {
                assert!(data[section]["about"][about].as_str().is_some_and(|text| text.len() > 10), "{section}");
            }
        }
        // A slash in the user id is encoded.
        let by_user = sdk.server.get(&format!("{}/users/user%2F42/data", sdk.app), &sdk.key).await.expect(200).json();
        assert_eq!(by_user["data"]["events"], data["events"]);
        assert_eq!(by_user["meta"], json!({"otherDevices": []}));

        let log = sdk.server.get("/api/v1/audit-log?limit=2", &sdk.key).await.expect(200);
        assert!(!log.text.contains(DEVICE) && !log.text.contains("user/42"), "{}", log.text);
        let entries = log.json()["data"].clone();
        assert_eq!((&entries[0]["action"], &entries[1]["action"]), (&json!("app_user.exported"), &json!("device.exported")));
        assert_eq!(entries[1]["id"], data["subject"]["exportId"]);

        sdk.server.call("DELETE", &format!("{}/devices/{DEVICE}", sdk.app), &sdk.key, None).await.expect(204);
        let pseudonym = sdk.log("&name=install").await;
        let pseudonym = pseudonym.iter().filter_map(|one| one["deviceId"].as_str()).find(|id| id.starts_with("erased-"));
        for (path, code) in [
            (path, "device_not_found"),
            (format!("{}/devices/{}/data", sdk.app, pseudonym.unwrap()), "device_not_found"),
            (format!("{}/users/user%2F42/data", sdk.app), "user_not_found"),
        ] {
            assert_eq!(sdk.server.get(&path, &sdk.key).await.expect(404).code(), code);
        }
    }

    async fn only_who_may_erase_may_export(engine: Engine) {
        let sdk = SdkFixture::start(engine).await;
        create_users(&sdk).await;
        let server: &TestServer = &sdk.server;
        let organization = server.store.organizations().await.unwrap()[0].id;
        let test = server.key(organization, Permission::Full, Environment::Test).await;
        let (device, user) = (format!("devices/{DEVICE}/data"), "users/neighbour/data".to_owned());
        for (path, code) in [(&device, "device_not_found"), (&user, "user_not_found")] {
            let answer = server.get(&format!("{}/{path}", sdk.app), &test).await.expect(404);
            assert_eq!(answer.code(), code, "a test key sees test data only");
            for permission in [Permission::ReadOnly, Permission::Analytics] {
                let key = server.key(organization, permission, Environment::Live).await;
                let answer = server.get(&format!("{}/{path}", sdk.app), &key).await.expect(403);
                assert_eq!(answer.code(), "insufficient_permission");
            }
        }
        let app = sdk.app.trim_start_matches("/api/v1");
        for (role, status) in [(Role::Viewer, 403), (Role::Analyst, 403), (Role::Admin, 200), (Role::Owner, 200)] {
            let cookie = server.sign_in_as(organization, role).await;
            for path in [&device, &user] {
                let request = server.request(Method::GET, &format!("{app}/{path}"));
                let answer = server.send(request.header("cookie", &cookie)).await.expect(status);
                if status == 200 {
                    let document = answer.json();
                    assert_eq!(document["meta"], Value::Null, "the file is for the person");
                    assert_eq!(document["data"]["complete"], true);
                }
            }
            let request = server.request(Method::GET, &format!("{app}/events?userId=neighbour"));
            let page = server.send(request.header("cookie", &cookie)).await.expect(200);
            assert_eq!(page.text.contains("/users/neighbour/data"), status == 200, "{role:?}");
        }
    }
}
