//! One organization's key finds nothing of another's, on any route, and cannot tell foreign from missing.

use crate::routes::{Needs, Place, ROUTES};
use serde_json::json;
use tributary_testkit::{TestServer, on_both_engines};

on_both_engines! {
    async fn foreign_is_as_good_as_missing_on_every_route(engine: Engine) {
        let server = TestServer::start(engine).await;
        let owner = server.full_key().await;
        let stranger = server.full_key().await;
        let place = Place::new(&server, &owner).await;
        let missing = Place {
            app: "app_01k9z3v7q8e4r9m2x5c6b7n8d0".to_owned(),
            link: "lnk_01k9z3v7q8e4r9m2x5c6b7n8d0".to_owned(),
            ..place.clone()
        };
        let mut tried = 0;
        for route in ROUTES.iter().filter(|route| route.path.contains("{appId}")) {
            let ask = async |place: &Place| {
                let path = route.at(place);
                let answer = server.call(route.method, &path, &stranger, route.body(place)).await;
                let mut body = answer.json();
                body["error"]["requestId"] = json!(null);
                (answer.status.as_u16(), body)
            };
            let foreign = ask(&place).await;
            assert_eq!(foreign.0, 404, "{route:?}: {foreign:?}");
            assert_eq!(foreign, ask(&missing).await, "{route:?}");
            tried += 1;
        }
        assert!(tried > 10);
        server.get(&format!("/api/v1/apps/{}", place.app), &owner).await.expect(200);
        let link = format!("/api/v1/apps/{}/links/{}", place.app, place.link);
        server.get(&link, &owner).await.expect(200);
    }

    async fn lists_hold_nothing_foreign(engine: Engine) {
        let server = TestServer::start(engine).await;
        let owner = server.full_key().await;
        let stranger = server.full_key().await;
        Place::new(&server, &owner).await;
        let apps = server.get("/api/v1/apps", &stranger).await.expect(200).data();
        assert_eq!(apps, json!([]));
        let log = server.get("/api/v1/audit-log", &stranger).await.expect(200).data();
        let actions: Vec<&str> =
            log.as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
        assert_eq!(actions, ["key.created", "organization.created"]);
    }

    async fn a_link_is_found_under_its_own_app_only(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let (one, other) = (Place::new(&server, &key).await, Place::new(&server, &key).await);
        let mixed = Place { link: other.link.clone(), ..one.clone() };
        for route in ROUTES.iter().filter(|route| route.path.contains("{linkId}")) {
            let answer = server.call(route.method, &route.at(&mixed), &key, route.body(&mixed)).await;
            assert_eq!((answer.status.as_u16(), answer.code().as_str()), (404, "link_not_found"));
        }
    }

    async fn what_is_no_id_names_nothing(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        for id in ["x", "app_", "lnk_01k9z3v7q8e4r9m2x5c6b7n8d0", "%00", "%FF", "..%2f..", "app_%0a"] {
            let answer = server.get(&format!("/api/v1/apps/{id}"), &key).await;
            assert_eq!((answer.status.as_u16(), answer.code().as_str()), (404, "app_not_found"), "{id}");
        }
        let place = Place::new(&server, &key).await;
        let path = format!("/api/v1/apps/{}/integrations/network_e", place.app);
        assert_eq!(server.get(&path, &key).await.expect(404).code(), "network_not_found");
        assert!(ROUTES.iter().any(|route| route.needs == Needs::AppsWrite));
    }
}
