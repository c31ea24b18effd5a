//! Authentication: who may do what, on every route.

use crate::routes::{Needs, ROUTES, RouteFixture};
use reqwest::Method;
use tributary_domain::access::{Environment, Permission};
use tributary_testkit::{TestServer, on_both_engines};

/// Returns the error that a key gets on a route; `Ok` means access. This is the specification's
/// permission table, plus the rules for test keys.
fn expected(
    needs: Needs,
    permission: Permission,
    environment: Environment,
) -> Result<(), (u16, &'static str)> {
    match (needs, permission, environment) {
        (Needs::Nothing | Needs::AnalyticsRead, _, _)
        | (Needs::AppsRead, Permission::Full | Permission::ReadOnly, _)
        | (
            Needs::DeliveryRead | Needs::AuditExport,
            Permission::Full | Permission::ReadOnly,
            Environment::Live,
        )
        | (Needs::AppsWrite, Permission::Full, Environment::Live)
        | (Needs::PeopleErase | Needs::KeysWrite, Permission::Full, _) => Ok(()),
        (Needs::AppsWrite, Permission::Full, Environment::Test)
        | (Needs::AuditExport, Permission::Full | Permission::ReadOnly, Environment::Test) => {
            Err((403, "production_only"))
        }
        (Needs::DeliveryRead, Permission::Full | Permission::ReadOnly, Environment::Test) => {
            Err((404, "delivery_not_found"))
        }
        (Needs::AppsRead | Needs::DeliveryRead | Needs::AuditExport, Permission::Analytics, _)
        | (
            Needs::AppsWrite | Needs::PeopleErase | Needs::KeysWrite,
            Permission::ReadOnly | Permission::Analytics,
            _,
        ) => Err((403, "insufficient_permission")),
        // SDK endpoints reject private keys, which must never ship inside an app.
        (Needs::SdkKey, _, _) => Err((401, "invalid_api_key")),
    }
}

on_both_engines! {
    async fn every_route_enforces_permission_and_environment(engine: Engine) {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        let owner = server.key(organization, Permission::Full, Environment::Live).await;
        for permission in Permission::ALL {
            for environment in [Environment::Test, Environment::Live] {
                let key = server.key(organization, *permission, environment).await;
                let fixture = RouteFixture::with_website(&server, &owner).await;
                for route in ROUTES {
                    let answer = route.call(&server, &fixture, &key, route.body(&fixture)).await;
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

    async fn sdk_keys_work_on_sdk_endpoints_only(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let fixture = RouteFixture::new(&server, &key).await;
        for route in ROUTES {
            for sdk_key in &fixture.sdk_keys {
                let answer = route.call(&server, &fixture, sdk_key, route.body(&fixture)).await;
                match route.needs {
                    Needs::SdkKey | Needs::Nothing => {
                        assert_eq!(answer.status.as_u16(), route.success, "{route:?}: {answer:?}");
                    }
                    _ => assert_eq!(answer.expect(403).code(), "private_key_required", "{route:?}"),
                }
            }
        }
    }

    async fn every_route_but_the_public_ones_requires_a_key(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let fixture = RouteFixture::new(&server, &key).await;
        for route in ROUTES {
            let method = Method::from_bytes(route.method.as_bytes()).unwrap();
            let answer = server.send(server.request(method, &route.path_for(&fixture))).await;
            if route.needs == Needs::Nothing {
                assert_eq!(answer.status.as_u16(), route.success);
            } else {
                assert_eq!(answer.status.as_u16(), 401, "{route:?}: {answer:?}");
                assert_eq!(answer.code(), "missing_api_key");
                assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            }
        }
    }

    async fn rejects_invalid_keys(engine: Engine) {
        let server = TestServer::start(engine).await;
        let organization = server.organization("Example").await;
        let key = server.key(organization, Permission::Full, Environment::Live).await;
        let listed = server.store.keys(organization).await.unwrap();
        let assert_rejected = async |header: &str| {
            let request = server.request(Method::GET, "/api/v1/apps").header("authorization", header);
            let answer = server.send(request).await.expect(401);
            assert_eq!(answer.code(), "invalid_api_key", "{header}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            assert!(!answer.text.contains(&key), "the response must not contain the key");
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
            assert_rejected(&header).await;
        }
        server.get("/api/v1/apps", &key).await.expect(200);
        let origin = tributary_domain::audit::AuditContext {
            actor: tributary_domain::access::Actor::Operator,
            address: None,
            request_id: None,
            environment: Environment::Live,
            at: listed[0].created_at,
            audit_id: tributary_domain::vocabulary::id::AuditId::from_bytes([9; 16]),
        };
        server.store.revoke_key(listed[0].id, origin).await.unwrap();
        assert_rejected(&format!("Bearer {key}")).await;
    }

    async fn the_rest_api_rejects_sdk_keys(engine: Engine) {
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

    async fn records_when_a_key_was_last_used(engine: Engine) {
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
        panic!("`last_used_at` was not recorded");
    }
}
