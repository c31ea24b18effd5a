//! Tenant isolation: on every route, another organization's objects look like missing ones.

use crate::routes::{Needs, ROUTES, Route, RouteFixture};
use serde_json::json;
use tributary_testkit::{TestServer, on_both_engines};

on_both_engines! {
    async fn foreign_objects_look_missing_on_every_route(engine: Engine) {
        let server = TestServer::start(engine).await;
        let owner = server.full_key().await;
        let other_key = server.full_key().await;
        let fixture = RouteFixture::new(&server, &owner).await;
        let missing = RouteFixture {
            app: "app_01k9z3v7q8e4r9m2x5c6b7n8d0".to_owned(),
            link: "lnk_01k9z3v7q8e4r9m2x5c6b7n8d0".to_owned(),
            key: "key_01k9z3v7q8e4r9m2x5c6b7n8d0".to_owned(),
            ..fixture.clone()
        };
        let mut checked = 0;
        let has_id = |route: &&Route| route.path.contains("{appId}") || route.path.contains("{keyId}");
        for route in ROUTES.iter().filter(has_id) {
            let call = async |fixture: &RouteFixture| {
                let path = route.path_for(fixture);
                let answer = server.call(route.method, &path, &other_key, route.body(fixture)).await;
                let mut body = answer.json();
                body["error"]["requestId"] = json!(null);
                (answer.status.as_u16(), body)
            };
            let foreign = call(&fixture).await;
            assert_eq!(foreign.0, 404, "{route:?}: {foreign:?}");
            assert_eq!(foreign, call(&missing).await, "{route:?}");
            checked += 1;
        }
        assert!(checked > 10);
        server.get(&format!("/api/v1/apps/{}", fixture.app), &owner).await.expect(200);
        let link = format!("/api/v1/apps/{}/links/{}", fixture.app, fixture.link);
        server.get(&link, &owner).await.expect(200);
    }

    async fn lists_contain_no_foreign_objects(engine: Engine) {
        let server = TestServer::start(engine).await;
        let owner = server.full_key().await;
        let other_key = server.full_key().await;
        RouteFixture::new(&server, &owner).await;
        let apps = server.get("/api/v1/apps", &other_key).await.expect(200).data();
        assert_eq!(apps, json!([]));
        let log = server.get("/api/v1/audit-log", &other_key).await.expect(200).data();
        let actions: Vec<&str> =
            log.as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
        assert_eq!(actions, ["key.created", "organization.created"]);
    }

    async fn a_link_is_visible_under_its_own_app_only(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let (one, other) = (RouteFixture::new(&server, &key).await, RouteFixture::new(&server, &key).await);
        let mixed = RouteFixture { link: other.link.clone(), ..one.clone() };
        for route in ROUTES.iter().filter(|route| route.path.contains("{linkId}")) {
            let answer = server.call(route.method, &route.path_for(&mixed), &key, route.body(&mixed)).await;
            assert_eq!((answer.status.as_u16(), answer.code().as_str()), (404, "link_not_found"));
        }
    }

    async fn a_notice_is_visible_under_its_own_app_only(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let (one, other) = (RouteFixture::new(&server, &key).await, RouteFixture::new(&server, &key).await);
        let mixed = RouteFixture { notice: other.notice.clone(), ..one.clone() };
        for route in ROUTES.iter().filter(|route| route.path.contains("{noticeId}")) {
            let answer = server.call(route.method, &route.path_for(&mixed), &key, route.body(&mixed)).await;
            assert_eq!((answer.status.as_u16(), answer.code().as_str()), (404, "notice_not_found"));
        }
    }

    async fn malformed_ids_are_not_found(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        for id in ["x", "app_", "lnk_01k9z3v7q8e4r9m2x5c6b7n8d0", "%00", "%FF", "..%2f..", "app_%0a"] {
            let answer = server.get(&format!("/api/v1/apps/{id}"), &key).await;
            assert_eq!((answer.status.as_u16(), answer.code().as_str()), (404, "app_not_found"), "{id}");
        }
        let fixture = RouteFixture::new(&server, &key).await;
        let path = format!("/api/v1/apps/{}/integrations/network_e", fixture.app);
        assert_eq!(server.get(&path, &key).await.expect(404).code(), "network_not_found");
        assert!(ROUTES.iter().any(|route| route.needs == Needs::AppsWrite));
    }
}
