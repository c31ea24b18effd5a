//! Authentication: who may do what, on every route.

use crate::routes::{Needs, Place, ROUTES};
use reqwest::Method;
use tributary_domain::access::{Environment, Permission};
use tributary_testkit::{TestServer, on_both_engines};

/// The specification's table, and the contract's for test keys.
fn expected(
    needs: Needs,
    permission: Permission,
    environment: Environment,
) -> Result<(), (u16, &'static str)> {
    match (needs, permission, environment) {
        (Needs::Nothing | Needs::AnalyticsRead, _, _)
        | (Needs::AppsRead, Permission::Full | Permission::ReadOnly, _)
        | (Needs::DeliveryRead, Permission::Full | Permission::ReadOnly, Environment::Live)
        | (Needs::AppsWrite, Permission::Full, Environment::Live)
        | (Needs::PeopleErase, Permission::Full, _) => Ok(()),
        (Needs::AppsWrite, Permission::Full, Environment::Test) => Err((403, "production_only")),
        (Needs::DeliveryRead, Permission::Full | Permission::ReadOnly, Environment::Test) => {
            Err((404, "delivery_not_found"))
        }
        (Needs::AppsRead | Needs::DeliveryRead, Permission::Analytics, _)
        | (
            Needs::AppsWrite | Needs::PeopleErase,
            Permission::ReadOnly | Permission::Analytics,
            _,
        ) => Err((403, "insufficient_permission")),
        // A private key has no business inside an app, so it opens nothing there.
        (Needs::SdkKey, _, _) => Err((401, "invalid_api_key")),
    }
}

on_both_engines! {
    async fn every_permission_and_environment_on_every_route(engine: Engine) {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        let owner = server.key(organization, Permission::Full, Environment::Live).await;
        for permission in Permission::ALL {
            for environment in [Environment::Test, Environment::Live] {
                let key = server.key(organization, *permission, environment).await;
                let place = Place::with_website(&server, &owner).await;
                for route in ROUTES {
                    let answer = route.call(&server, &place, &key, route.body(&place)).await;
                    let name = format!("{permission:?} {environment:?}: {} {}", route.method, route.path);
                    match expected(route.needs, *permission, environment) {
                        Ok(()) => assert_eq!(answer.status.as_u16(), route.success, "{name}: {answer:?}"),
                        Err((status, code)) => {
                            assert_eq!(answer.status.as_u16(), status, "{name}: {answer:?}");
                            assert_eq!(answer.code(), code, "{name}");
                        }
                    }
                }
            }
        }
    }

    async fn both_keys_of_an_app_open_the_doors_of_its_sdk_and_nothing_else(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let place = Place::new(&server, &key).await;
        for route in ROUTES {
            for sdk_key in &place.sdk_keys {
                let answer = route.call(&server, &place, sdk_key, route.body(&place)).await;
                match route.needs {
                    Needs::SdkKey | Needs::Nothing => {
                        assert_eq!(answer.status.as_u16(), route.success, "{route:?}: {answer:?}");
                    }
                    _ => assert_eq!(answer.expect(403).code(), "private_key_required", "{route:?}"),
                }
            }
        }
    }

    async fn every_route_wants_a_key_but_the_public_ones(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let place = Place::new(&server, &key).await;
        for route in ROUTES {
            let method = Method::from_bytes(route.method.as_bytes()).unwrap();
            let answer = server.send(server.request(method, &route.at(&place))).await;
            if route.needs == Needs::Nothing {
                assert_eq!(answer.status.as_u16(), route.success);
            } else {
                assert_eq!(answer.status.as_u16(), 401, "{route:?}: {answer:?}");
                assert_eq!(answer.code(), "missing_api_key");
                assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            }
        }
    }

    async fn a_key_that_is_not_valid_is_refused(engine: Engine) {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        let key = server.key(organization, Permission::Full, Environment::Live).await;
        let listed = server.store.keys(organization).await.unwrap();
        let refused = async |header: &str| {
            let request = server.request(Method::GET, "/api/v1/apps").header("authorization", header);
            let answer = server.send(request).await.expect(401);
            assert_eq!(answer.code(), "invalid_api_key", "{header}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            assert!(!answer.text.contains(&key), "the key is not repeated");
        };
        let mut mistyped = key.clone();
        mistyped.pop();
        mistyped.push(if key.ends_with('0') { '1' } else { '0' });
        for header in [
            format!("Basic {key}"),
            key.clone(),
            "Bearer".to_owned(),
            "Bearer ".to_owned(),
            format!("Bearer {mistyped}"),
            format!("Bearer {key}x"),
            format!("Bearer {}", "A".repeat(5_000)),
            "Bearer ak_live_unknown".to_owned(),
        ] {
            refused(&header).await;
        }
        server.get("/api/v1/apps", &key).await.expect(200);
        let origin = tributary_domain::audit::AuditContext {
            actor: tributary_domain::access::Actor::Operator,
            address: None,
            request_id: None,
            at: listed[0].created_at,
            audit_id: tributary_domain::vocabulary::id::AuditId::from_bytes([9; 16]),
        };
        server.store.revoke_key(listed[0].id, origin).await.unwrap();
        refused(&format!("Bearer {key}")).await;
    }

    async fn an_sdk_key_is_not_for_this_interface(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let app = server.app(&key).await;
        let app = server.get(&app, &key).await.expect(200).data();
        for sdk_key in ["liveKey", "testKey"] {
            let sdk_key = app["sdk"][sdk_key].as_str().unwrap();
            let answer = server.get("/api/v1/apps", sdk_key).await.expect(403);
            assert_eq!(answer.code(), "private_key_required");
        }
    }

    async fn the_last_use_of_a_key_is_known(engine: Engine) {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        let key = server.key(organization, Permission::Analytics, Environment::Live).await;
        assert_eq!(server.store.keys(organization).await.unwrap()[0].last_used_at, None);
        server.get("/api/v1/apps", &key).await.expect(403);
        for _ in 0..3_000 {
            if server.store.keys(organization).await.unwrap()[0].last_used_at.is_some() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        panic!("the last use was not written down");
    }
}
