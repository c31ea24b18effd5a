//! Notices: reports and alerts by e-mail, Slack and webhook.

use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tributary_domain::access::{Environment, Permission};
use tributary_domain::forwarding::alert::AlertKind;
use tributary_domain::notice::example_alert;
use tributary_domain::runtime::Clock as _;
use tributary_domain::vocabulary::calendar::today;
use tributary_domain::vocabulary::id::{AlertId, AppId};
use tributary_domain::vocabulary::timezone::Timezone;
use tributary_testkit::{
    Engine, SmtpBehavior, TestServer, TestServerSettings, TestSmtp, on_both_engines,
};

/// Password of the mail server. No response and no message may contain it.
const PASSWORD: &str = "canary-password";

struct NoticeFixture {
    server: TestServer,
    smtp: TestSmtp,
    key: String,
    app: String,
}

impl NoticeFixture {
    async fn start(engine: Engine) -> Self {
        let smtp = TestSmtp::start(SmtpBehavior::Accepting).await;
        let settings = TestServerSettings {
            mail_url: format!("smtp+plain://me:{PASSWORD}@{}", smtp.address),
            ..TestServerSettings::default()
        };
        let server = TestServer::start_with(engine, settings).await;
        let organization = server.organization("Example").await;
        let key = server
            .key(organization, Permission::Full, Environment::Live)
            .await;
        let app = server.app(&key).await;
        let zone = json!({"timezone": "Europe/Berlin"});
        server.patch(&app, &key, zone).await.expect(200);
        Self {
            server,
            smtp,
            key,
            app,
        }
    }

    async fn create(&self, fields: Value) -> String {
        let mut body = json!({
            "name": "Test", "channel": "email", "recipients": ["team@example.com", "ads@example.com"],
        });
        body.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        let path = format!("{}/notices", self.app);
        let created = self.server.post(&path, &self.key, body).await.expect(201);
        let id = created.data()["id"].as_str().unwrap().to_owned();
        format!("{path}/{id}")
    }

    async fn install(&self, device: &str) {
        let app = self
            .server
            .get(&self.app, &self.key)
            .await
            .expect(200)
            .data();
        let sdk_key = app["sdk"]["liveKey"].as_str().unwrap();
        let body = json!({"deviceId": device, "platform": "ios"}).to_string();
        let request = self.server.request(Method::POST, "/api/track/configure");
        let request = request.header("x-tributary-key", sdk_key);
        let request = request
            .header("content-type", "application/json")
            .body(body);
        self.server.send(request).await.expect(200);
    }

    /// Does what the worker does.
    async fn work(&self) {
        while self.server.notices.check_due().await.unwrap() {}
        while self.server.notices.send_due().await.unwrap() {}
    }

    fn subjects(&self) -> Vec<String> {
        let caught = self.smtp.caught();
        caught.iter().map(|mail| mail.header("subject")).collect()
    }

    fn today(&self) -> String {
        let zone = Timezone::parse("Europe/Berlin").unwrap();
        today(self.server.clock.now(), &zone).to_string()
    }
}

on_both_engines! {
    async fn a_daily_summary_arrives_once_and_equals_the_overview(engine: Engine) {
        let fixture = NoticeFixture::start(engine).await;
        fixture.server.clock.advance(Duration::from_hours(12));
        fixture.create(json!({"topic": "daily_summary", "hour": 8})).await;
        let day = fixture.today();
        for device in ["a", "b", "c"] {
            fixture.install(device).await;
        }
        let costs = json!({"costs": [{"day": day, "network": "network_a", "amount": 1212.5}]});
        fixture.server.call("PUT", &format!("{}/costs", fixture.app), &fixture.key, Some(costs)).await.expect(200);
        fixture.work().await;
        assert_eq!(fixture.subjects(), Vec::<String>::new(), "a new notice reports no day that is over");
        // Looks come every hour; the summary of the day is due tomorrow at eight.
        for _ in 0..40 {
            fixture.server.clock.advance(Duration::from_hours(1));
            if fixture.today() == day {
                continue;
            }
            fixture.work().await;
            if !fixture.smtp.caught().is_empty() {
                break;
            }
        }
        fixture.work().await;
        let caught = fixture.smtp.caught();
        assert_eq!(caught.len(), 1, "once: {caught:?}");
        let overview = format!("{}/overview?from={day}&to={day}", fixture.app);
        let overview = fixture.server.get(&overview, &fixture.key).await.expect(200).data();
        assert_eq!(overview["kpis"]["installs"]["value"], json!(3));
        assert_eq!(overview["kpis"]["cost"]["value"], json!(1212.5));
        let (text, html) = (caught[0].text(), caught[0].html());
        for part in ["Installs", "3", "Organic installs", "$1,212.50", &format!("from={day}&to={day}")] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let line = text.lines().find(|line| line.starts_with("Installs ")).unwrap();
        assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["Installs", "3"]);
        assert!(html.contains("<strong>$1,212.50</strong>"), "{html}");
        assert_eq!(caught[0].to, ["team@example.com", "ads@example.com"]);
        assert_eq!(caught[0].from, "reports@example.com");
        assert!(caught[0].header("subject").contains(": 3 installs"), "{caught:?}");
        assert!(caught[0].header("message-id").ends_with("@example.com>"), "{caught:?}");
        assert!(!caught[0].data.contains(PASSWORD));
    }

    async fn a_threshold_sends_one_message_a_day(engine: Engine) {
        let fixture = NoticeFixture::start(engine).await;
        let notice = fixture.create(json!({
            "topic": "threshold", "metric": "installs", "condition": "over", "value": 2, "window": "day",
        })).await;
        for device in ["a", "b"] {
            fixture.install(device).await;
        }
        fixture.work().await;
        assert_eq!(fixture.subjects().len(), 0, "two are not over two");
        fixture.install("c").await;
        for _ in 0..3 {
            fixture.server.clock.advance(Duration::from_mins(6));
            fixture.work().await;
        }
        let subjects = fixture.subjects();
        assert_eq!(subjects.len(), 1, "{subjects:?}");
        assert!(subjects[0].contains("Installs over 2"), "{subjects:?}");
        let sent = fixture.server.get(&notice, &fixture.key).await.expect(200).data();
        assert!(sent["lastSentAt"].is_string() && sent["lastError"].is_null(), "{sent}");
    }

    async fn alerts_reach_their_notices_once(engine: Engine) {
        let fixture = NoticeFixture::start(engine).await;
        fixture.create(json!({"topic": "integration_paused"})).await;
        fixture.create(json!({"topic": "traffic_anomaly"})).await;
        let app = AppId::parse(fixture.app.rsplit('/').next().unwrap()).unwrap();
        let now = fixture.server.clock.now();
        for (kind, number) in [(AlertKind::IntegrationPaused, 1), (AlertKind::TrafficAnomaly, 2), (AlertKind::RatesStale, 3)] {
            let mut alert = example_alert(app, kind, now);
            alert.id = AlertId::from_bytes([number; 16]);
            for _ in 0..2 {
                fixture.server.store.queue_alert_messages(alert.clone(), now).await.unwrap();
                fixture.work().await;
            }
        }
        let subjects = fixture.subjects();
        assert_eq!(subjects.len(), 2, "{subjects:?}");
        assert!(subjects[0].ends_with("integration with Meta paused"), "{subjects:?}");
        assert!(subjects[1].ends_with("unusual traffic"), "{subjects:?}");
    }

    async fn a_message_is_delivered_once_after_the_mail_server_is_back(engine: Engine) {
        let fixture = NoticeFixture::start(engine).await;
        let notice = fixture.create(json!({"topic": "integration_paused"})).await;
        let app = AppId::parse(fixture.app.rsplit('/').next().unwrap()).unwrap();
        let now = fixture.server.clock.now();
        fixture.smtp.behave(SmtpBehavior::RefusingLogin);
        let alert = example_alert(app, AlertKind::IntegrationPaused, now);
        fixture.server.store.queue_alert_messages(alert, now).await.unwrap();
        fixture.work().await;
        let failed = fixture.server.get(&notice, &fixture.key).await.expect(200);
        let error = failed.data()["lastError"].as_str().unwrap().to_owned();
        assert!(error.contains("refused the login (code 535)"), "{error}");
        assert!(!failed.text.contains(PASSWORD));
        fixture.smtp.behave(SmtpBehavior::RefusingRecipients);
        fixture.server.clock.advance(Duration::from_secs(6));
        fixture.work().await;
        let failed = fixture.server.get(&notice, &fixture.key).await.expect(200).data();
        assert!(failed["lastError"].as_str().unwrap().contains("code 550"), "{failed}");
        fixture.smtp.behave(SmtpBehavior::Accepting);
        fixture.work().await;
        assert_eq!(fixture.smtp.caught(), [], "not before its time");
        for _ in 0..3 {
            fixture.server.clock.advance(Duration::from_mins(6));
            fixture.work().await;
        }
        assert_eq!(fixture.smtp.caught().len(), 1);
        let sent = fixture.server.get(&notice, &fixture.key).await.expect(200).data();
        assert_eq!(sent["lastError"], json!(null));
    }

    async fn notices_are_managed_and_never_show_their_url(engine: Engine) {
        let fixture = NoticeFixture::start(engine).await;
        let (server, key) = (&fixture.server, &fixture.key);
        let list = format!("{}/notices", fixture.app);
        let secret = "https://hooks.slack.com/services/T1/canary-url";
        let mut body = json!({
            "name": "Slack", "channel": "slack", "url": secret, "topic": "weekly_summary", "weekday": "monday", "hour": 9,
        });
        let created = server.post(&list, key, body.clone()).await.expect(201);
        assert!(!created.text.contains("canary-url"));
        assert_eq!(created.data()["urlOrigin"], "https://hooks.slack.com");
        let path = created.header("location").unwrap().to_owned();
        body["hour"] = json!(10);
        body.as_object_mut().unwrap().remove("url");
        let replaced = server.call("PUT", &path, key, Some(body.clone())).await.expect(200);
        assert_eq!((&replaced.data()["hour"], &replaced.data()["urlOrigin"]), (&json!(10), &json!("https://hooks.slack.com")));
        let preview = server.post(&format!("{list}/preview"), key, body.clone()).await.expect(200).data();
        let blocks: Value = serde_json::from_str(preview["body"].as_str().unwrap()).unwrap();
        assert_eq!(blocks["blocks"][0]["type"], "header");
        body["channel"] = json!("webhook");
        let missing = server.call("PUT", &path, key, Some(body)).await.expect(422);
        assert_eq!(missing.faults(), [("url".to_owned(), "required".to_owned())]);
        let wrong = json!({
            "name": "", "channel": "email", "recipients": ["a@example.com\r\nBcc: b@example.com"], "topic": "threshold",
            "metric": "nonsense", "condition": "near", "value": "x", "window": "year", "network": "network_z", "hour": 3,
        });
        let fields: Vec<String> = server.post(&list, key, wrong).await.expect(422).faults().into_iter().map(|fault| fault.0).collect();
        for field in ["name", "recipients", "metric", "condition", "value", "window", "network", "hour"] {
            assert!(fields.contains(&field.to_owned()), "{field}: {fields:?}");
        }
        let shown = server.get(&list, key).await.expect(200);
        assert_eq!(shown.data().as_array().unwrap().len(), 1);
        let log = server.get("/api/v1/audit-log?limit=10", key).await.expect(200);
        for text in [&shown.text, &log.text] {
            assert!(!text.contains("canary-url") && !text.contains(PASSWORD), "{text}");
        }
        assert!(log.text.contains("notice.created") && log.text.contains("notice.updated"));
        server.call("DELETE", &path, key, None).await.expect(204);
        assert_eq!(server.get(&path, key).await.expect(404).code(), "notice_not_found");
    }

    async fn a_test_tells_what_went_wrong(engine: Engine) {
        let fixture = NoticeFixture::start(engine).await;
        let notice = fixture.create(json!({"topic": "daily_summary", "hour": 8})).await;
        let test = async |notice: &str| {
            let path = format!("{notice}/test");
            fixture.server.call("POST", &path, &fixture.key, None).await.expect(200).data()
        };
        assert_eq!(test(&notice).await, json!({"accepted": true, "error": null}));
        assert!(fixture.smtp.caught()[0].text().starts_with("This is a test."));
        fixture.smtp.behave(SmtpBehavior::RefusingLogin);
        let refused = test(&notice).await;
        assert!(refused["error"].as_str().unwrap().contains("code 535"), "{refused}");
        let webhook = fixture.create(json!({
            "channel": "webhook", "recipients": null, "url": "https://localhost/hook", "topic": "daily_summary", "hour": 8,
        })).await;
        let private = test(&webhook).await;
        assert!(private["error"].as_str().unwrap().contains("private address"), "{private}");
        let silent = TestServer::start(engine).await;
        let key = silent.full_key().await;
        let app = silent.app(&key).await;
        let body = json!({"name": "A", "channel": "email", "recipients": ["a@example.com"], "topic": "integration_paused"});
        let id = silent.post(&format!("{app}/notices"), &key, body).await.expect(201).data()["id"].clone();
        let path = format!("{app}/notices/{}/test", id.as_str().unwrap());
        let unset = silent.call("POST", &path, &key, None).await.expect(200).data();
        assert!(unset["error"].as_str().unwrap().contains("mail.url"), "{unset}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_server_that_hangs_is_given_up() {
    let fixture = NoticeFixture::start(Engine::Sqlite).await;
    let notice = fixture.create(json!({"topic": "integration_paused"})).await;
    fixture.smtp.behave(SmtpBehavior::Hanging);
    let path = format!("{notice}/test");
    let tested = fixture.server.call("POST", &path, &fixture.key, None).await;
    let error = tested.expect(200).data()["error"].to_string();
    assert!(error.contains("did not answer in time"), "{error}");
}
