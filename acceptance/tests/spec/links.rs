//! Links: `/api/v1/apps/{appId}/links` and `/{linkId}`.

use crate::routes::RouteFixture;
use reqwest::Method;
use serde_json::json;
use tributary_testkit::{TestServer, on_both_engines};

on_both_engines! {
    async fn creates_a_link_from_a_name_alone(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let app = server.app(&key).await;
        let body = json!({"name": "Spring – social"});
        let answer = server.post(&format!("{app}/links"), &key, body).await.expect(201);
        let link = answer.data();
        let slug = link["slug"].as_str().unwrap();
        let id = link["id"].as_str().unwrap();
        assert!(id.starts_with("lnk_"));
        assert_eq!(answer.header("location"), Some(format!("{app}/links/{id}").as_str()));
        assert_eq!(answer.header("etag"), Some("\"1\""));
        assert_eq!(link, json!({
            "id": id, "appId": app.rsplit('/').next(), "name": "Spring – social", "slug": slug,
            "type": "app_install", "network": null, "active": true,
            "iosUrl": null, "androidUrl": null, "fallbackUrl": null, "destinationUrl": null,
            "passParams": ["fbclid", "gclid", "gbraid", "wbraid", "ttclid", "oppref", "utm_*"],
            "deepLink": null, "customData": {},
            "campaign": {"id": null, "name": null, "adsetId": null, "adsetName": null, "adId": null, "adName": null},
            "url": format!("https://t.example.com/c/{slug}"),
            "landingUrl": format!("https://t.example.com/g/{slug}"),
            "urlParameters": null,
            "createdAt": link["createdAt"], "updatedAt": link["createdAt"],
        }));
        let read = server.get(&format!("{app}/links/{id}"), &key).await.expect(200);
        assert_eq!(read.data(), link);
    }

    async fn a_web_funnel_link_needs_an_https_destination(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let links = format!("{}/links", server.app(&key).await);
        let answer = server.post(&links, &key, json!({"name": "W", "type": "web_funnel"})).await.expect(422);
        assert_eq!(answer.faults(), [("destinationUrl".to_owned(), "required".to_owned())]);
        let plain = json!({"name": "W", "type": "web_funnel", "destinationUrl": "http://example.com"});
        server.post(&links, &key, plain).await.expect(422);
        let body = json!({
            "name": "W", "type": "web_funnel", "slug": "funnel", "network": "network_d",
            "destinationUrl": "https://example.com/a?b=c#d",
        });
        let link = server.post(&links, &key, body).await.expect(201).data();
        assert_eq!(link["url"], "https://t.example.com/w/funnel");
        assert_eq!(link["landingUrl"], json!(null));
        let path = format!("{links}/{}", link["id"].as_str().unwrap());
        let answer = server.patch(&path, &key, json!({"destinationUrl": null})).await.expect(422);
        assert_eq!(answer.faults(), [("destinationUrl".to_owned(), "required".to_owned())]);
        let both = json!({"destinationUrl": null, "type": "app_install"});
        server.patch(&path, &key, both).await.expect(200);
    }

    async fn accepts_only_safe_destinations(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let links = format!("{}/links", server.app(&key).await);
        let long = format!("https://example.com/{}", "a".repeat(2_000));
        for url in [
            "javascript:alert(1)", "http://example.com", "//example.com", "https://you:me@example.com",
            "https://example.com\\@evil.example", "https://example.com/\r\nX: y", "ftp://example.com", "", "x",
            long.as_str(),
        ] {
            for field in ["iosUrl", "androidUrl", "fallbackUrl", "destinationUrl"] {
                let answer = server.post(&links, &key, json!({"name": "L", field: url})).await.expect(422);
                assert_eq!(answer.faults()[0].0, field, "{url}");
            }
        }
        for deep_link in ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "JavaScript:x"] {
            let answer = server.post(&links, &key, json!({"name": "L", "deepLink": deep_link})).await;
            assert_eq!(answer.expect(422).faults()[0].0, "deepLink", "{deep_link}");
        }
    }

    async fn deep_links_use_the_schemes_that_the_app_lists(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let app = server.app(&key).await;
        let links = format!("{app}/links");
        let custom = |scheme: &str| json!({"name": "L", "deepLink": format!("{scheme}://offer/42")});
        // The scheme of another app, for example a bank, would start that app.
        let answer = server.post(&links, &key, custom("bank")).await.expect(422);
        assert_eq!(answer.faults(), [("deepLink".to_owned(), "not_allowed".to_owned())]);
        for scheme in ["javascript", "data", "file", "intent", "vbscript", "blob", "itms-services", "runner:", "", "c"] {
            let answer = server.patch(&app, &key, json!({"deepLinkSchemes": [scheme]})).await.expect(422);
            assert!(answer.faults()[0].0.starts_with("deepLinkSchemes"), "{scheme}: {answer:?}");
        }
        let listed = json!({"deepLinkSchemes": ["Runner", "runner-beta"]});
        let changed = server.patch(&app, &key, listed).await.expect(200).data();
        assert_eq!(changed["deepLinkSchemes"], json!(["runner", "runner-beta"]));
        let link = server.post(&links, &key, custom("runner")).await.expect(201).data();
        let link = format!("{links}/{}", link["id"].as_str().unwrap());
        server.patch(&link, &key, custom("runner-beta")).await.expect(200);
        server.patch(&link, &key, custom("https")).await.expect(200);
        let stored = server.patch(&link, &key, custom("runner")).await.expect(200).data();
        let answer = server.patch(&link, &key, custom("bank")).await.expect(422);
        assert_eq!(answer.faults()[0].0, "deepLink");
        // A stored deep link stays valid when its scheme is removed from the list.
        server.patch(&app, &key, json!({"deepLinkSchemes": []})).await.expect(200);
        server.patch(&link, &key, json!({"name": "M", "deepLink": stored["deepLink"]})).await.expect(200);
        server.patch(&link, &key, custom("runner-beta")).await.expect(422);
    }

    async fn reports_all_invalid_fields_at_once(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let links = format!("{}/links", server.app(&key).await);
        let faulty = json!({
            "name": "x".repeat(201), "slug": "No Slug", "type": "qr", "network": "network_e", "active": 1,
            "passParams": ["ar_click_id"], "customData": {"a": 1}, "campaign": {"id": "", "budget": 5},
            "url": "https://example.com",
        });
        let answer = server.post(&links, &key, faulty).await.expect(422);
        let mut fields: Vec<String> = answer.faults().into_iter().map(|(field, _)| field).collect();
        fields.sort();
        assert_eq!(fields, [
            "active", "campaign.budget", "campaign.id", "customData", "name", "network", "passParams",
            "slug", "type", "url",
        ]);
    }

    async fn rejects_a_duplicate_key_in_a_map(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let links = format!("{}/links", server.app(&key).await);
        let body = r#"{"name": "A", "customData": {"a": "1", "a": "2"}}"#;
        let request = server.request(Method::POST, &links).bearer_auth(&key);
        let request = request.header("content-type", "application/json").body(body);
        let answer = server.send(request).await.expect(422);
        assert_eq!(answer.faults(), [("customData".to_owned(), "duplicate_field".to_owned())]);
    }

    async fn slugs_are_never_reused_on_an_instance(engine: Engine) {
        let server = TestServer::start(engine).await;
        let (one, other) = (server.full_key().await, server.full_key().await);
        let mine = format!("{}/links", server.app(&one).await);
        let theirs = format!("{}/links", server.app(&other).await);
        let body = json!({"name": "A", "slug": "spring"});
        let link = server.post(&mine, &one, body.clone()).await.expect(201).data();
        let answer = server.post(&theirs, &other, body.clone()).await.expect(409);
        assert_eq!(answer.code(), "slug_taken");
        let path = format!("{mine}/{}", link["id"].as_str().unwrap());
        server.call("DELETE", &path, &one, None).await.expect(204);
        assert_eq!(server.post(&theirs, &other, body).await.expect(409).code(), "slug_taken");
    }

    async fn a_deleted_link_returns_404(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let fixture = RouteFixture::new(&server, &key).await;
        let path = format!("/api/v1/apps/{}/links/{}", fixture.app, fixture.link);
        let stale = server.request(Method::DELETE, &path).bearer_auth(&key).header("if-match", "\"9\"");
        assert_eq!(server.send(stale).await.expect(409).code(), "version_conflict");
        let deleted = server.call("DELETE", &path, &key, None).await.expect(204);
        assert_eq!(deleted.text, "");
        for method in ["GET", "DELETE"] {
            let answer = server.call(method, &path, &key, None).await.expect(404);
            assert_eq!(answer.code(), "link_not_found");
        }
        let links = server.get(&format!("/api/v1/apps/{}/links", fixture.app), &key).await.expect(200);
        assert_eq!(links.data(), json!([]));
    }

    async fn links_use_the_link_domain_of_their_app(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let app = server.app(&key).await;
        server.link_domain(&app, &key, "go.example.com").await;
        let body = json!({"name": "A", "slug": "spring", "network": "network_a"});
        let link = server.post(&format!("{app}/links"), &key, body).await.expect(201).data();
        assert_eq!(link["url"], "https://go.example.com/c/spring");
        assert!(link["urlParameters"].as_str().unwrap().contains("campaign_id={{campaign.id}}"));
    }

    async fn maps_and_lists_are_replaced_as_a_whole(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let fixture = RouteFixture::new(&server, &key).await;
        let path = format!("/api/v1/apps/{}/links/{}", fixture.app, fixture.link);
        let set = json!({"customData": {"a": "1", "b": "2"}, "passParams": ["x"], "campaign": {"id": "7"}});
        server.patch(&path, &key, set).await.expect(200);
        let set = json!({"customData": {"c": "3"}, "passParams": [], "campaign": {"name": "Spring"}});
        let link = server.patch(&path, &key, set).await.expect(200).data();
        assert_eq!(link["customData"], json!({"c": "3"}));
        assert_eq!(link["passParams"], json!([]));
        assert_eq!(link["campaign"]["id"], "7", "object fields are merged");
        assert_eq!(link["campaign"]["name"], "Spring");
    }
}
