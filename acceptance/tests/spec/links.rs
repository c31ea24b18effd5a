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
            "type": "app_install", "network": null, "active": true, "test": false,
            "iosUrl": null, "androidUrl": null, "fallbackUrl": null, "destinationUrl": null,
            "passParams": ["fbclid", "gclid", "gbraid", "wbraid", "ttclid", "oppref", "utm_*"],
            "deepLink": null, "customData": {},
            "campaign": {"id": null, "name": null, "adsetId": null, "adsetName": null, "adId": null, "adName": null},
            "tags": [], "folder": null,
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

    async fn links_have_tags_and_a_folder(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let links = format!("{}/links", server.app(&key).await);
        let body = json!({"name": "Spring", "tags": [" Influencer", "q4", "Q4"], "folder": " Spring 2026 "});
        let link = server.post(&links, &key, body).await.expect(201).data();
        assert_eq!(link["tags"], json!(["Influencer", "q4"]), "the first spelling stays");
        assert_eq!(link["folder"], "Spring 2026");
        let path = format!("{links}/{}", link["id"].as_str().unwrap());
        let same = server.patch(&path, &key, link.clone()).await.expect(200);
        assert_eq!(same.data(), link, "the document may be sent back");
        let reset = json!({"tags": null, "folder": null});
        let changed = server.patch(&path, &key, reset).await.expect(200).data();
        assert_eq!((&changed["tags"], &changed["folder"]), (&json!([]), &json!(null)));
        let many: Vec<String> = (0..21).map(|number| number.to_string()).collect();
        for (faulty, field, code) in [
            (json!({"tags": many}), "tags", "too_long"),
            (json!({"tags": ["a,b"]}), "tags", "invalid_character"),
            (json!({"tags": ["x".repeat(41)]}), "tags", "too_long"),
            (json!({"folder": "x".repeat(81)}), "folder", "too_long"),
            (json!({"folder": "  "}), "folder", "too_short"),
        ] {
            let answer = server.patch(&path, &key, faulty).await.expect(422);
            assert_eq!(answer.faults(), [(field.to_owned(), code.to_owned())]);
        }
        let log = server.get("/api/v1/audit-log?limit=1", &key).await.expect(200).data();
        let fields: Vec<_> = log[0]["changes"].as_array().unwrap().iter().map(|change| change["field"].clone()).collect();
        assert_eq!(fields, ["tags", "folder"]);
    }

    async fn links_are_found_by_text_tag_and_folder(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let links = format!("{}/links", server.app(&key).await);
        for body in [
            json!({"name": "Frühling", "slug": "one", "tags": ["EU"], "folder": "2026"}),
            json!({"name": "Winter", "slug": "two", "tags": ["us", "eu"]}),
            json!({"name": "Other", "slug": "winter-3", "campaign": {"name": "Launch"}}),
        ] {
            server.post(&links, &key, body).await.expect(201);
        }
        for (query, expected) in [
            ("search=FR%C3%9CHLING", &["one"][..]),
            ("search=winter", &["winter-3", "two"]),
            ("search=launch", &["winter-3"]),
            ("tag=eu", &["two", "one"]),
            ("tag=eu&folder=2026", &["one"]),
            ("folder=2025", &[]),
        ] {
            let found = server.get(&format!("{links}?{query}"), &key).await.expect(200).data();
            let slugs: Vec<_> = found.as_array().unwrap().iter().map(|link| link["slug"].clone()).collect();
            assert_eq!(slugs, expected, "{query}");
        }
        let page = server.get(&format!("{links}?tag=eu&limit=1"), &key).await.expect(200).json();
        let cursor = page["meta"]["cursor"].as_str().unwrap();
        let next = server.get(&format!("{links}?tag=eu&limit=1&cursor={cursor}"), &key).await.expect(200).json();
        assert_eq!((&next["data"][0]["slug"], &next["meta"]["hasMore"]), (&json!("one"), &json!(false)));
        let other = server.get(&format!("{links}?tag=us&cursor={cursor}"), &key).await;
        assert_eq!(other.expect(422).code(), "invalid_cursor");
        let answer = server.get(&format!("{links}?search=&tag=a,b"), &key).await.expect(422);
        assert_eq!(answer.faults().len(), 2);
    }

    async fn a_link_has_a_qr_code(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let fixture = RouteFixture::new(&server, &key).await;
        let path = format!("/api/v1/apps/{}/links/{}/qr", fixture.app, fixture.link);
        let svg = server.get(&format!("{path}.svg"), &key).await.expect(200);
        assert_eq!(svg.header("content-type"), Some("image/svg+xml"));
        assert!(svg.text.starts_with("<svg ") && svg.text.contains("<g "), "{}", svg.text);
        let plain = server.get(&format!("{path}.svg?logo=false"), &key).await.expect(200);
        assert!(!plain.text.contains("<g "));
        let png = server.get(&format!("{path}.png"), &key).await.expect(200);
        assert_eq!(png.header("content-type"), Some("image/png"));
        assert!(png.text.contains("PNG"));
        server.get(&format!("{path}.png?logo=maybe"), &key).await.expect(422);
        let unknown = path.replace(&fixture.link, "lnk_01k9z3v7q8e4r9m2x5c6b7n8d1");
        let answer = server.get(&format!("{unknown}.svg"), &key).await.expect(404);
        assert_eq!(answer.code(), "link_not_found");
    }

    async fn many_links_are_created_together_or_not_at_all(engine: Engine) {
        let server = TestServer::start(engine).await;
        let key = server.full_key().await;
        let links = format!("{}/links", server.app(&key).await);
        let bulk = format!("{links}/bulk");
        let body = json!({"links": [
            {"name": "One", "slug": "one", "tags": ["a"]},
            {"name": "Two", "type": "web_funnel", "destinationUrl": "https://example.com/"},
        ]});
        let answer = server.post(&bulk, &key, body).await.expect(201);
        assert_eq!(answer.header("location"), Some(links.as_str()));
        let created = answer.data();
        assert_eq!((&created[0]["slug"], &created[1]["name"]), (&json!("one"), &json!("Two")));
        assert_eq!(server.get(&links, &key).await.expect(200).data(), created, "in the same order");
        let faulty = json!({"links": [
            {"name": "A", "slug": "No Slug"}, {"slug": "abc"}, {"name": "C", "color": "red"}, 5,
        ]});
        let answer = server.post(&bulk, &key, faulty).await.expect(422);
        let fields: Vec<String> = answer.faults().into_iter().map(|(field, _)| field).collect();
        assert_eq!(fields, ["links[0].slug", "links[1].name", "links[2].color", "links[3]"]);
        for (faulty, field) in [
            (json!({"links": [{"name": "A", "type": "web_funnel"}]}), "links[0].destinationUrl"),
            (json!({"links": [{"name": "A", "slug": "abc"}, {"name": "B", "slug": "abc"}]}), "links[1].slug"),
            (json!({"links": [{"name": "A"}, {"name": "B", "slug": "one"}]}), "links[1].slug"),
            (json!({"links": [{"name": "A", "deepLink": "bank://pay"}]}), "links[0].deepLink"),
            (json!({"links": []}), "links"),
            (json!({"links": vec![json!({"name": "A"}); 501]}), "links"),
            (json!({}), "links"),
        ] {
            let answer = server.post(&bulk, &key, faulty).await.expect(422);
            assert_eq!(answer.faults()[0].0, field);
        }
        let stored = server.get(&links, &key).await.expect(200).data();
        assert_eq!(stored.as_array().unwrap().len(), 2, "a refused request stores nothing");
    }
}
