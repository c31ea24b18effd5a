//! `tributary admin user …` while the server runs: listing, resetting and removing people. Links that
//! are sent by e-mail.

use crate::command_line::tributary;
use reqwest::{Client, RequestBuilder, Response};
use serde_json::Value;
use std::time::Duration;
use tributary_testkit::{
    CaughtMail, ServerProcess, SmtpBehavior, TestDatabase, TestSmtp, client, on_both_engines,
};

const PASSWORD: &str = "canary-in-a-coal-mine";
const NEW_PASSWORD: &str = "six-lamps-on-the-quiet-pier";

/// A person with a browser.
struct Person<'a> {
    server: &'a ServerProcess,
    client: Client,
    email: &'static str,
}

impl<'a> Person<'a> {
    fn new(server: &'a ServerProcess, email: &'static str) -> Self {
        Self {
            server,
            client: client(),
            email,
        }
    }

    async fn post(&self, path: &str, cookie: &str, body: &str) -> Response {
        let request = self.client.post(self.at(path));
        self.send(request.body(body.to_owned()), cookie).await
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.server.base_url())
    }

    async fn send(&self, request: RequestBuilder, cookie: &str) -> Response {
        let request = request
            .header("origin", self.server.base_url())
            .header("content-type", "application/x-www-form-urlencoded")
            .header("cookie", cookie);
        request.send().await.unwrap()
    }

    /// Opens a one-time link and submits its form. Returns the cookies.
    async fn redeem(&self, link: &str, password: &str) -> (u16, String) {
        let first = link.lines().next().unwrap();
        let path = first.splitn(4, '/').last().unwrap();
        let body = format!("email={}&password={password}", self.email);
        let response = self.post(&format!("/{path}"), "", &body).await;
        (response.status().as_u16(), cookies(&response))
    }

    async fn sign_in(&self, password: &str) -> (u16, String) {
        let body = format!("email={}&password={password}", self.email);
        let response = self.post("/sign-in", "", &body).await;
        (response.status().as_u16(), cookies(&response))
    }

    /// Returns whether a session is signed in.
    async fn is_signed_in(&self, cookie: &str) -> bool {
        let request = self.client.get(self.at("/account"));
        self.send(request, cookie).await.status() == 200
    }

    /// Submits a form of a page with its token. Returns the page that follows.
    async fn submit(&self, page: &str, path: &str, cookie: &str, fields: &str) -> String {
        let page = self.send(self.client.get(self.at(page)), cookie).await;
        let text = page.text().await.unwrap();
        let (_, rest) = text.split_once("name=\"formToken\" value=\"").unwrap();
        let token = rest.split('"').next().unwrap();
        let form = format!("formToken={token}&{fields}");
        self.post(path, cookie, &form).await.text().await.unwrap()
    }

    /// Creates an API key on the page.
    async fn create_key(&self, cookie: &str) -> String {
        let fields = "name=Mine&permission=full&environment=live";
        let text = self.submit("/keys", "/keys", cookie, fields).await;
        let (_, rest) = text.split_once("ak_live_").unwrap();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap();
        format!("ak_live_{}", &rest[..end])
    }

    /// Creates an app with a notice to a private address on the page.
    async fn create_notice(&self, cookie: &str, key: &str) {
        let url = self.at("/api/v1/apps");
        let request = self.client.post(url).bearer_auth(key);
        let request = request.header("content-type", "application/json");
        let created = request.body(r#"{"name": "Runner"}"#).send().await.unwrap();
        let created: Value = serde_json::from_str(&created.text().await.unwrap()).unwrap();
        let app = created["data"]["id"].as_str().unwrap();
        let new = format!("/apps/{app}/notices/new");
        let fields = "name=Feed&active=on&topic=daily_summary&hour=8&channel=email\
                      &recipients=private%40example.net";
        self.submit(&new, &new, cookie, fields).await;
    }

    async fn key_status(&self, key: &str) -> u16 {
        let request = self.client.get(self.at("/api/v1/apps")).bearer_auth(key);
        request.send().await.unwrap().status().as_u16()
    }
}

fn cookies(response: &Response) -> String {
    let cookies = response.headers().get_all("set-cookie").iter();
    let pairs: Vec<&str> = cookies
        .filter_map(|one| one.to_str().ok()?.split(';').next())
        .collect();
    pairs.join("; ")
}

/// Waits until the mail server has this many messages.
async fn mails(smtp: &TestSmtp, count: usize) -> Vec<CaughtMail> {
    let enough = async {
        while smtp.caught().len() < count {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(30), enough).await;
    waited.expect("the messages arrive");
    smtp.caught()
}

/// Returns the link in a message.
fn link_in(mail: &CaughtMail) -> String {
    let text = mail.text();
    let link = text.lines().find(|line| line.starts_with("http"));
    link.expect("a link").to_owned()
}

fn run(database: &TestDatabase, command: &str) -> Result<String, String> {
    let words: Vec<&str> = command.split(' ').collect();
    tokio::task::block_in_place(|| ServerProcess::run(database, &words))
}

/// Invites a person and creates the account. Returns the cookies.
async fn join(database: &TestDatabase, person: &Person<'_>, role: &str) -> String {
    let invite = format!("admin user create --email {} --role {role}", person.email);
    let link = run(database, &invite).unwrap();
    let (status, cookies) = person.redeem(&link, PASSWORD).await;
    assert_eq!(status, 200);
    cookies
}

on_both_engines! {
    async fn the_operator_resets_a_password(engine: Engine) {
        let database = TestDatabase::new(engine).await;
        let server = ServerProcess::start(&database).await;
        let person = Person::new(&server, "you@example.com");
        let session = join(&database, &person, "owner").await;
        assert!(person.is_signed_in(&session).await);

        let first = run(&database, "admin user reset you@example.com --remove-factors").unwrap();
        assert!(first.contains("removed 0 passkeys"), "{first}");
        let link = run(&database, "admin user reset You@example.com").unwrap();
        assert!(link.contains("/reset/reset_"), "{link}");
        assert!(link.contains("kept 0 passkeys"), "{link}");
        assert!(!person.is_signed_in(&session).await);
        assert_eq!(person.sign_in(PASSWORD).await.0, 422, "the old password ended");
        assert_eq!(person.redeem(&first, NEW_PASSWORD).await.0, 404, "it was replaced");
        assert_eq!(person.redeem(&link, NEW_PASSWORD).await.0, 200);
        assert_eq!(person.redeem(&link, NEW_PASSWORD).await.0, 404, "it was used");
        let (status, session) = person.sign_in(NEW_PASSWORD).await;
        assert_eq!(status, 303);
        let log = person.send(person.client.get(person.at("/audit-log")), &session).await;
        let log = log.text().await.unwrap();
        for action in ["password_reset.created", "user.password_reset"] {
            assert!(log.contains(action), "{log}");
        }
        let refused = run(&database, "admin user reset nobody@example.com").unwrap_err();
        assert!(refused.contains("tributary admin user list"), "{refused}");
        assert!(!server.log().contains("you@example.com"));
    }

    async fn links_are_sent_by_mail(engine: Engine) {
        let database = TestDatabase::new(engine).await;
        let smtp = TestSmtp::start(SmtpBehavior::Accepting).await;
        let url = format!("smtp+plain://{}", smtp.address);
        let mail = [("TRIBUTARY_MAIL__URL", url.as_str()), ("TRIBUTARY_MAIL__FROM", "t@example.com")];
        let server = ServerProcess::start_with(&database, &mail).await;
        let owner = Person::new(&server, "owner@example.com");
        let owner_session = join(&database, &owner, "owner").await;
        let invitation = "email=you@example.com&role=viewer";
        let shown = owner.submit("/team", "/team/invite", &owner_session, invitation).await;
        assert!(shown.contains("It was sent to"), "{shown}");
        let invited = mails(&smtp, 1).await.remove(0);
        assert_eq!(invited.to, ["you@example.com"]);
        assert_eq!(invited.header("subject"), "Invitation to My organization");
        let person = Person::new(&server, "you@example.com");
        let (status, session) = person.redeem(&link_in(&invited), PASSWORD).await;
        assert_eq!(status, 200);

        let stranger = person.post("/forgot", "", "email=stranger@example.com").await;
        assert_eq!(stranger.status(), 200);
        let asked = person.post("/forgot", "", "email=You@example.com").await;
        assert_eq!(asked.status(), 200);
        let reset = mails(&smtp, 2).await.remove(1);
        assert_eq!(reset.to, ["you@example.com"]);
        assert!(person.is_signed_in(&session).await, "nothing ended yet");
        let link = link_in(&reset);
        assert!(link.starts_with(server.base_url()), "{link}");
        assert_eq!(person.redeem(&link, NEW_PASSWORD).await.0, 200);
        assert_eq!(person.redeem(&link, NEW_PASSWORD).await.0, 404, "it was used");
        assert!(!person.is_signed_in(&session).await);
        assert_eq!(person.sign_in(PASSWORD).await.0, 422);
        let (status, session) = person.sign_in(NEW_PASSWORD).await;
        assert_eq!(status, 303);
        let log = owner.send(owner.client.get(owner.at("/audit-log")), &owner_session).await;
        let log = log.text().await.unwrap();
        for action in ["password_reset.created", "user.password_reset"] {
            assert!(log.contains(action), "{log}");
        }

        let mut operator = mail.to_vec();
        operator.push(("TRIBUTARY_BASE_URL", server.base_url()));
        let reset = |settings: &[(&str, &str)]| {
            let words = ["admin", "user", "reset", "--mail", "you@example.com"];
            tokio::task::block_in_place(|| ServerProcess::run_with(&database, settings, &words))
        };
        let refused = reset(&[]).unwrap_err();
        assert!(refused.contains("mail.url"), "{refused}");
        assert!(person.is_signed_in(&session).await, "nothing ended without a mail server");
        let printed = reset(&operator).unwrap();
        assert!(!printed.contains("/reset/"), "{printed}");
        assert_eq!(person.sign_in(NEW_PASSWORD).await.0, 422, "the password ended");
        let third = mails(&smtp, 3).await.remove(2);
        assert_eq!(person.redeem(&link_in(&third), PASSWORD).await.0, 200);
        assert_eq!(smtp.caught().len(), 3);
        for secret in ["you@example.com", "stranger@example.com", "/reset/reset_"] {
            assert!(!server.log().contains(secret), "{}", server.log());
        }
    }

    async fn a_removed_person_has_no_access(engine: Engine) {
        let database = TestDatabase::new(engine).await;
        let server = ServerProcess::start(&database).await;
        let owner = Person::new(&server, "owner@example.com");
        let owner_session = join(&database, &owner, "owner").await;
        let person = Person::new(&server, "admin@example.com");
        let session = join(&database, &person, "admin").await;
        let key = person.create_key(&session).await;
        assert_eq!(person.key_status(&key).await, 200);

        let listed = run(&database, "admin user list").unwrap();
        assert!(listed.contains("admin in My organization"), "{listed}");
        let listed = run(&database, "admin user list --json").unwrap();
        let listed: Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(listed[0]["email"], "admin@example.com");
        assert_eq!(listed[0]["accounts"][0]["role"], "admin");
        assert!(listed[0]["accounts"][0]["lastSignInAt"].is_string(), "{listed}");

        person.create_notice(&session, &key).await;
        let invite = "email=private%40example.net&role=owner";
        let invited = owner.submit("/team", "/team/invite", &owner_session, invite).await;
        assert!(invited.contains("/setup/setup_"), "{invited}");
        let hint = &key[key.len() - 4..];
        let refused = run(&database, "admin user remove admin@example.com").unwrap_err();
        for expected in [&format!("API key Mine (…{hint})"), "notice Feed", "--yes"] {
            assert!(refused.contains(expected), "{refused}");
        }
        assert!(!refused.contains("private@example.net") && !refused.contains(&key), "{refused}");
        assert!(person.is_signed_in(&session).await, "nothing ended");
        assert_eq!(person.key_status(&key).await, 200);
        let printed = run(&database, "admin user remove admin@example.com --yes").unwrap();
        let expected = format!(
            "Removed from My organization.\nEnded: API key Mine (…{hint})\nEnded: notice Feed"
        );
        assert_eq!(printed.trim(), expected);
        assert!(!person.is_signed_in(&session).await);
        // The server learns of a change by another process within a second.
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(person.key_status(&key).await, 401);
        assert_eq!(person.sign_in(PASSWORD).await.0, 422);
        assert!(owner.is_signed_in(&owner_session).await);

        let refused = run(&database, "admin user remove owner@example.com --yes").unwrap_err();
        assert!(refused.contains("My organization") && refused.contains("--force"), "{refused}");
        assert!(owner.is_signed_in(&owner_session).await);
        let forced = "admin user remove owner@example.com --force";
        let refused = run(&database, forced).unwrap_err();
        assert!(refused.contains("invitation of private@example.net as owner"), "{refused}");
        let printed = run(&database, &format!("{forced} --yes")).unwrap();
        assert!(printed.contains("has no owner now"), "{printed}");
        assert!(printed.contains("Ended: invitation of private@example.net as owner"), "{printed}");
        assert!(!owner.is_signed_in(&owner_session).await);
        assert_eq!(run(&database, "admin user list").unwrap().trim(), "");
    }
}

#[test]
fn an_invalid_address_is_named() {
    for command in ["reset", "remove"] {
        let output = tributary(&["admin", "user", command, "you"], &[]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains("email address"), "{text}");
    }
}
