//! Single sign-on with a provider that the tests run.

use reqwest::Method;
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};
use tributary_domain::access::Environment;
use tributary_domain::access::Permission;
use tributary_domain::access::person::Role;
use tributary_domain::runtime::Clock as _;
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_testkit::open_id::{CLIENT_ID, CLIENT_SECRET, TestProvider, TokenAlgorithm};
use tributary_testkit::{Engine, TestResponse, TestServer, TestServerSettings, on_both_engines};

const BASE_URL: &str = "https://t.example.com";
const FORM_TOKEN: &str = "name=\"formToken\" value=\"";
const ATTEMPT: &str = "__Host-tributary-sign-on=";
const SESSION: &str = "__Host-tributary=";

/// An organization with a provider.
struct Setup {
    server: TestServer,
    provider: TestProvider,
    organization: OrganizationId,
    owner: String,
}

/// The page and cookie with which a browser comes back from the provider.
struct Answer {
    path: String,
    attempt: String,
}

fn encoded(text: &str) -> String {
    text.bytes()
        .fold(String::new(), |text, byte| text + &format!("%{byte:02X}"))
}

/// Returns the cookie that begins like this, as a request sends it.
fn cookie(response: &TestResponse, prefix: &str) -> Option<String> {
    let cookies = response.headers.get_all("set-cookie").iter();
    let pairs = cookies.map(|one| one.to_str().unwrap().split(';').next().unwrap().to_owned());
    pairs.into_iter().find(|pair| pair.starts_with(prefix))
}

async fn get(server: &TestServer, path: &str, cookies: &str) -> TestResponse {
    server
        .send(server.request(Method::GET, path).header("cookie", cookies))
        .await
}

async fn post(server: &TestServer, path: &str, cookies: &str, body: String) -> TestResponse {
    let request = server
        .request(Method::POST, path)
        .header("cookie", cookies)
        .header("origin", BASE_URL)
        .header("sec-fetch-site", "same-origin")
        .header("content-type", "application/x-www-form-urlencoded");
    server.send(request.body(body)).await
}

/// Posts a form of a signed-in user.
async fn submit(server: &TestServer, path: &str, session: &str, fields: &str) -> TestResponse {
    let page = get(server, "/account", session).await.expect(200);
    let token = page.text.split(FORM_TOKEN).nth(1).unwrap();
    let token = token.split('"').next().unwrap();
    post(server, path, session, format!("formToken={token}&{fields}")).await
}

fn settings(issuer: &str, secret: &str, more: &str) -> String {
    format!(
        "issuer={}&clientId={}&clientSecret={}&emailDomains=example.com&defaultRole=analyst{more}",
        encoded(issuer),
        encoded(CLIENT_ID),
        encoded(secret)
    )
}

impl Setup {
    async fn new(engine: Engine, more: &str) -> Self {
        let settings = TestServerSettings {
            proxies: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
            ..TestServerSettings::default()
        };
        let server = TestServer::start_with(engine, settings).await;
        let provider = TestProvider::start("1", "new@example.com").await;
        let organization = server.organization("Example").await;
        let owner = server.sign_in_as(organization, Role::Owner).await;
        let setup = Self {
            server,
            provider,
            organization,
            owner,
        };
        setup.set_times();
        setup.save(more).await.expect(303);
        setup
    }

    /// Gives tokens the times of the server's clock.
    fn set_times(&self) {
        let now = self.server.clock.now().as_millis() / 1_000;
        self.provider.change(|behavior| {
            behavior.claims.insert("iat".to_owned(), json!(now));
            behavior.claims.insert("exp".to_owned(), json!(now + 300));
        });
    }

    /// Lets the provider say that the person signed in there this long ago.
    fn set_signed_in(&self, ago: std::time::Duration) {
        let at = self.server.clock.now().minus(ago).as_millis() / 1_000;
        self.provider.change(|behavior| {
            behavior.claims.insert("auth_time".to_owned(), json!(at));
        });
    }

    async fn save(&self, more: &str) -> TestResponse {
        let form = settings(&self.provider.issuer, CLIENT_SECRET, more);
        submit(&self.server, "/team/single-sign-on", &self.owner, &form).await
    }

    fn path(&self) -> String {
        format!("/sign-in/sso/{}", self.organization)
    }

    /// Goes to the provider and comes back.
    async fn answer_of(&self, begun: TestResponse) -> Answer {
        self.answer_without(begun, "").await
    }

    /// Like `answer_of`, but the user removes a part of the request from the address bar.
    async fn answer_without(&self, begun: TestResponse, removed: &str) -> Answer {
        let begun = begun.expect(200);
        let attempt = cookie(&begun, ATTEMPT).unwrap();
        let refresh = begun.header("refresh").unwrap();
        let url = refresh.strip_prefix("0; url=").unwrap();
        assert!(url.contains(removed), "{url}");
        let url = &url.replace(removed, "");
        assert!(
            url.starts_with(&format!("{}/in?", self.provider.issuer)),
            "{url}"
        );
        let client = tributary_testkit::client();
        let redirect = client.get(url).send().await.unwrap();
        let target = redirect.headers()["location"].to_str().unwrap().to_owned();
        let path = target.strip_prefix(BASE_URL).unwrap().to_owned();
        assert!(
            path.starts_with(&format!("{}/callback?", self.path())),
            "{path}"
        );
        Answer { path, attempt }
    }

    async fn begin(&self) -> Answer {
        let next = encoded("/account");
        let begun = post(&self.server, &self.path(), "", format!("next={next}")).await;
        self.answer_of(begun).await
    }

    async fn complete(&self, answer: &Answer) -> TestResponse {
        get(&self.server, &answer.path, &answer.attempt).await
    }

    /// Comes back from the provider, from this address.
    async fn complete_from(&self, answer: &Answer, address: &str) -> TestResponse {
        let request = self.server.request(Method::GET, &answer.path);
        let request = request.header("cookie", &answer.attempt);
        self.server
            .send(request.header("x-forwarded-for", address))
            .await
    }

    async fn sign_in(&self) -> TestResponse {
        self.complete(&self.begin().await).await
    }

    /// Signs in and returns the session.
    async fn session(&self) -> String {
        let response = self.sign_in().await.expect(303);
        assert_eq!(response.header("location"), Some("/account"));
        cookie(&response, SESSION).unwrap()
    }

    /// Signs in, which must fail with this text.
    async fn fails(&self, status: u16, text: &str) {
        let response = self.sign_in().await.expect(status);
        let shown = response.text.replace("&#39;", "'");
        assert!(shown.contains(text), "{text}: {shown}");
        assert_eq!(cookie(&response, SESSION), None);
    }

    /// Signs in again in the browser of this session, and returns the new one.
    async fn repeated(&self, session: &str, removed: &str) -> String {
        let form = format!("next={}", encoded("/account"));
        let begun = post(&self.server, &self.path(), session, form).await;
        let answer = self.answer_without(begun, removed).await;
        let both = format!("{}; {session}", answer.attempt);
        let response = get(&self.server, &answer.path, &both).await.expect(303);
        cookie(&response, SESSION).unwrap()
    }

    /// Returns whether a session may open a sensitive page.
    async fn is_proved(&self, session: &str) -> bool {
        let page = get(&self.server, "/account/authenticator", session).await;
        let is_asked = page.text.contains("Confirm that it is you");
        assert_eq!(page.status.as_u16(), if is_asked { 403 } else { 200 });
        !is_asked
    }

    /// Moves the clock on, so that failures do not hold up the next sign-in.
    fn wait(&self) {
        self.server
            .clock
            .advance(std::time::Duration::from_hours(1));
        self.set_times();
    }

    async fn with_claim(&self, name: &str, value: Value, status: u16, text: &str) {
        let before = self.provider.behavior();
        self.provider.change(|behavior| {
            behavior.claims.insert(name.to_owned(), value);
        });
        self.fails(status, text).await;
        self.provider.change(|behavior| *behavior = before);
        self.wait();
    }

    async fn reasons(&self) -> Vec<String> {
        let key = self
            .server
            .key(self.organization, Permission::Full, Environment::Live)
            .await;
        let log = self
            .server
            .get("/api/v1/audit-log?limit=100", &key)
            .await
            .expect(200)
            .data();
        let failed = log
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["action"] == "user.sign_in_failed");
        failed
            .map(|one| one["changes"][0]["after"].as_str().unwrap().to_owned())
            .collect()
    }
}

on_both_engines! {
    async fn a_new_person_signs_in_with_each_algorithm(engine: Engine) {
        let setup = Setup::new(engine, "&allowsPasswords=on").await;
        for (index, algorithm) in [TokenAlgorithm::Rs256, TokenAlgorithm::Es256].into_iter().enumerate() {
            let email = format!("new{index}@example.com");
            setup.provider.set_person(&email, &email);
            setup.provider.change(|behavior| behavior.algorithm = algorithm);
            let session = setup.session().await;
            let page = get(&setup.server, "/account", &session).await.expect(200);
            assert!(page.text.contains(&email) && page.text.contains("analyst of Example"), "{}", page.text);
            assert!(page.text.contains("single sign-on"), "the list of sessions tells how it began");
            // The same subject is the same account.
            setup.session().await;
            let team = get(&setup.server, "/team", &setup.owner).await.expect(200);
            assert_eq!(team.text.matches(&format!("Role of {email}")).count(), 1);
        }
        let offered = setup.sign_in().await.expect(303);
        let organization = cookie(&offered, "__Host-tributary-organization=").unwrap();
        let page = get(&setup.server, "/sign-in", &organization).await.expect(200);
        assert!(page.text.contains(&setup.path()));
    }

    async fn wrong_tokens_are_rejected(engine: Engine) {
        let setup = Setup::new(engine, "").await;
        let now = setup.server.clock.now().as_millis() / 1_000;
        setup.with_claim("iss", json!("https://evil.test"), 422, "another issuer").await;
        setup.with_claim("aud", json!("another client"), 422, "another client id").await;
        setup.with_claim("azp", json!("another client"), 422, "another client id").await;
        setup.with_claim("exp", json!(now - 100_000), 422, "not valid at this time").await;
        setup.with_claim("iat", json!(now + 100_000), 422, "not valid at this time").await;
        setup.with_claim("nonce", json!("another"), 422, "another sign-in").await;
        setup.with_claim("nonce", Value::Null, 422, "another sign-in").await;
        setup.with_claim("sub", Value::Null, 422, "no valid ID token").await;
        setup.with_claim("email", Value::Null, 403, "no email address").await;
        setup.with_claim("email_verified", json!(false), 403, "not verified").await;
        setup.with_claim("email_verified", Value::Null, 403, "not verified").await;
        setup.with_claim("email", json!("new@evil.test"), 403, "not at a domain").await;
        for (algorithm, text) in [
            (TokenAlgorithm::None, "no valid ID token"),
            (TokenAlgorithm::Hs256, "not signed with RS256 or ES256"),
            (TokenAlgorithm::OtherEs256, "signature of the provider's ID token is wrong"),
        ] {
            setup.provider.change(|behavior| behavior.algorithm = algorithm);
            setup.fails(422, text).await;
            setup.wait();
        }
        setup.provider.change(|behavior| behavior.algorithm = TokenAlgorithm::Rs256);
        let reasons = setup.reasons().await;
        assert_eq!(reasons.len(), 15, "{reasons:?}");
        for reason in ["token_nonce", "token_audience", "email_not_verified", "token_signature"] {
            assert!(reasons.iter().any(|one| one == reason), "{reason}: {reasons:?}");
        }
        setup.session().await;
    }

    async fn new_keys_are_fetched_when_they_are_needed(engine: Engine) {
        let setup = Setup::new(engine, "").await;
        setup.session().await;
        setup.session().await;
        assert_eq!(setup.provider.key_fetches(), 1);
        setup.provider.change(|behavior| "2".clone_into(&mut behavior.key_id));
        // Not in quick succession.
        let early = setup.sign_in().await.expect(422);
        assert!(early.text.contains("does not publish"), "{}", early.text);
        assert_eq!(setup.provider.key_fetches(), 1);
        setup.server.clock.advance(std::time::Duration::from_secs(11));
        setup.set_times();
        setup.session().await;
        assert_eq!(setup.provider.key_fetches(), 2);
    }

    async fn an_answer_belongs_to_one_browser_and_one_sign_in(engine: Engine) {
        let setup = Setup::new(engine, "").await;
        let (answer, other) = (setup.begin().await, setup.begin().await);
        let (server, expired) = (&setup.server, "has expired, or began in another browser");
        for (path, cookies) in [
            (&answer.path, ""),
            (&answer.path, &*other.attempt),
            (&answer.path.replace("iss=http", "iss=https"), &answer.attempt),
            (&answer.path.replace("state=", "state=0"), &answer.attempt),
        ] {
            let response = get(server, path, cookies).await.expect(400);
            assert!(response.text.contains(expired), "{}", response.text);
        }
        setup.complete(&answer).await.expect(303);
        let again = setup.complete(&answer).await.expect(422);
        assert!(again.text.contains("rejected the sign-in code"), "{}", again.text);
        let denied = other.path.replace("code=", "error=access_denied&x=");
        let denied = get(server, &denied, &other.attempt).await.expect(403);
        assert!(denied.text.contains("did not let you in"), "{}", denied.text);
        // Too late.
        let late = setup.begin().await;
        server.clock.advance(std::time::Duration::from_secs(601));
        setup.complete(&late).await.expect(400);
        // Another site cannot begin a sign-in.
        let request = server.request(Method::POST, &setup.path()).header("origin", "https://evil.test");
        let request = request.header("content-type", "application/x-www-form-urlencoded").body("next=");
        server.send(request).await.expect(403);
    }

    async fn a_provider_does_not_reach_another_organization(engine: Engine) {
        let setup = Setup::new(engine, "").await;
        let server = &setup.server;
        let other = server.organization("Other").await;
        let victim = server.sign_in_as(other, Role::Owner).await;
        let account = get(server, "/account", &victim).await.expect(200).text;
        let email = account.split("Signed in as <strong>").nth(1).unwrap().split('<').next().unwrap();
        setup.provider.set_person("victim", email);
        let session = setup.session().await;
        let page = get(server, "/account", &session).await.expect(200);
        assert!(page.text.contains("analyst of Example"), "{}", page.text);
        // The other organization has no provider; neither has one that does not exist.
        let unknown = format!("/sign-in/sso/{other}");
        let (one, none) = (get(server, &unknown, "").await, get(server, "/sign-in/sso/org_x", "").await);
        assert_eq!((one.status.as_u16(), none.status.as_u16()), (404, 404));
        assert_eq!(one.text, none.text);
        // An answer for one organization is none for another.
        let form = settings(&setup.provider.issuer, CLIENT_SECRET, "");
        submit(server, "/team/single-sign-on", &victim, &form).await.expect(303);
        let answer = setup.begin().await;
        let elsewhere = answer.path.replace(&setup.organization.to_string(), &other.to_string());
        get(server, &elsewhere, &answer.attempt).await.expect(400);
    }

    async fn owners_connect_their_accounts_themselves(engine: Engine) {
        let setup = Setup::new(engine, "").await;
        let server = &setup.server;
        let account = get(server, "/account", &setup.owner).await.expect(200).text;
        let email = account.split("Signed in as <strong>").nth(1).unwrap().split('<').next().unwrap();
        setup.provider.set_person("owner", email);
        setup.fails(403, "An owner connects the account first").await;
        let begun = submit(server, "/team/single-sign-on/connect", &setup.owner, "").await;
        let answer = setup.answer_of(begun).await;
        setup.complete(&answer).await.expect(400);
        let both = format!("{}; {}", answer.attempt, setup.owner);
        let connected = get(server, &answer.path, &both).await.expect(303);
        assert_eq!(connected.header("location"), Some("/team/single-sign-on?notice=connected"));
        let session = setup.session().await;
        let page = get(server, "/account", &session).await.expect(200);
        assert!(page.text.contains("owner of Example"), "{}", page.text);
    }

    async fn members_without_passwords_use_the_provider(engine: Engine) {
        let setup = Setup::new(engine, "").await;
        let server = &setup.server;
        let invite = async |email: &str, role: &str| {
            let form = format!("email={}&role={role}", encoded(email));
            let page = submit(server, "/team/invite", &setup.owner, &form).await.expect(200);
            let link = page.text.split(&format!("{BASE_URL}/setup/")).nth(1).unwrap();
            format!("/setup/{}", link.split('<').next().unwrap())
        };
        let link = invite("new@example.com", "viewer").await;
        for response in [
            get(server, &link, "").await,
            post(server, &link, "", "password=correct-horse-battery".to_owned()).await,
        ] {
            assert_eq!(response.expect(303).header("location"), Some(&*setup.path()));
        }
        let session = setup.session().await;
        let page = get(server, "/account", &session).await.expect(200);
        assert!(page.text.contains("viewer of Example"), "the invitation has the role");
        get(server, &link, "").await.expect(404);
        // An owner may choose a password.
        let link = invite("owner2@example.com", "owner").await;
        get(server, &link, "").await.expect(200);
        setup.provider.set_person("2", "owner2@example.com");
        setup.fails(403, "You are invited as an owner").await;
        // Members with a password are led to the provider once the password is checked.
        setup.save("&allowsPasswords=on").await.expect(303);
        let link = invite("member@example.com", "admin").await;
        let password = "correct-horse-battery";
        post(server, &link, "", format!("password={password}")).await.expect(200);
        let sign_in = async |password: &str| {
            let form = format!("email={}&password={password}", encoded("member@example.com"));
            post(server, "/sign-in", "", form).await
        };
        assert_eq!(sign_in(password).await.expect(303).header("location"), Some("/home"));
        setup.save("").await.expect(303);
        let led = sign_in(password).await.expect(303);
        assert!(led.header("location").unwrap().starts_with(&setup.path()));
        assert_eq!(cookie(&led, SESSION), None);
        assert_eq!(sign_in("a wrong password").await.status, 422);
    }

    async fn removed_members_do_not_come_back(engine: Engine) {
        let setup = Setup::new(engine, "").await;
        let server = &setup.server;
        let session = setup.session().await;
        let team = get(server, "/team", &setup.owner).await.expect(200).text;
        let row = team.split("Role of new@example.com").next().unwrap();
        let member = row.rsplit("action=\"/team/").next().unwrap().split('/').next().unwrap();
        let path = format!("/team/{member}/remove");
        submit(server, &path, &setup.owner, "confirmed=on").await.expect(303);
        get(server, "/account", &session).await.expect(303);
        setup.fails(403, "You were removed").await;
        setup.provider.set_person("1", "another@example.com");
        setup.fails(403, "You were removed").await;
    }

    async fn only_owners_see_and_change_the_settings(engine: Engine) {
        let setup = Setup::new(engine, "&allowsPasswords=on").await;
        let server = &setup.server;
        let path = "/team/single-sign-on";
        for role in [Role::Admin, Role::Analyst, Role::Viewer] {
            let member = server.sign_in_as(setup.organization, role).await;
            get(server, path, &member).await.expect(403);
            for action in ["", "/test", "/connect", "/remove"] {
                submit(server, &format!("{path}{action}"), &member, "").await.expect(403);
            }
        }
        let page = get(server, path, &setup.owner).await.expect(200);
        assert!(page.text.contains(&format!("{BASE_URL}{}/callback", setup.path())));
        assert!(!page.text.contains("canary"), "the secret is not shown");
        let tested = submit(server, &format!("{path}/test"), &setup.owner, "").await.expect(200);
        assert!(tested.text.contains("The provider answers"), "{}", tested.text);
        let wrong = "issuer=x&clientId=&emailDomains=&defaultRole=owner&clientSecret=canary";
        let wrong = submit(server, path, &setup.owner, wrong).await.expect(422);
        for field in ["issuer", "clientId", "emailDomains", "defaultRole"] {
            assert!(wrong.text.contains(&format!("data-field=\"{field}\"")), "{field}");
        }
        assert!(!wrong.text.contains("canary"), "a typed secret is not sent back");
        let form = settings("http://127.0.0.1:1", "", "");
        let elsewhere = submit(server, path, &setup.owner, &form).await.expect(422);
        assert!(elsewhere.text.contains("Enter the client secret"), "{}", elsewhere.text);
        let form = settings(&setup.provider.issuer, "another secret", "");
        submit(server, path, &setup.owner, &form).await.expect(303);
        setup.fails(422, "rejected the client id or the client secret").await;
        submit(server, &format!("{path}/remove"), &setup.owner, "").await.expect(303);
        get(server, &setup.path(), "").await.expect(404);
    }

    async fn failed_sign_ins_are_limited(engine: Engine) {
        let setup = Setup::new(engine, "").await;
        setup.provider.change(|behavior| behavior.algorithm = TokenAlgorithm::Hs256);
        for _ in 0..5 {
            setup.sign_in().await.expect(422);
        }
        setup.provider.change(|behavior| behavior.algorithm = TokenAlgorithm::Rs256);
        let limited = setup.sign_in().await.expect(429);
        assert!(limited.text.contains("Too many failed attempts"), "{}", limited.text);
        // An error in the query needs no provider, and must not fill the audit log either.
        let mut answer = setup.begin().await;
        answer.path = answer.path.replace("code=", "error=access_denied&x=");
        setup.complete(&answer).await.expect(429);
        assert_eq!(setup.reasons().await, ["token_algorithm"; 5]);
    }

    async fn failed_sign_ins_of_one_network_are_counted_together(engine: Engine) {
        let setup = Setup::new(engine, "").await;
        setup.provider.change(|behavior| behavior.algorithm = TokenAlgorithm::Hs256);
        for address in ["2001:db8::1", "2001:db8::2"].into_iter().cycle().take(5) {
            setup.complete_from(&setup.begin().await, address).await.expect(422);
        }
        setup.complete_from(&setup.begin().await, "2001:db8::3").await.expect(429);
        setup.complete_from(&setup.begin().await, "2001:db8:0:1::1").await.expect(422);
    }

    /// An outage, or an expired client secret, fails for everybody in an office at once.
    async fn an_outage_of_the_provider_locks_nobody_out(engine: Engine) {
        let setup = Setup::new(engine, "").await;
        setup.provider.change(|behavior| behavior.is_down = true);
        for _ in 0..7 {
            let failed = setup.sign_in().await.expect(422);
            assert!(failed.text.contains("status 503"), "{}", failed.text);
        }
        setup.provider.change(|behavior| behavior.is_down = false);
        for _ in 0..7 {
            let mut answer = setup.begin().await;
            answer.path = answer.path.replace("code=", "error=temporarily_unavailable&x=");
            setup.complete(&answer).await.expect(403);
        }
        let form = "email=you@example.com&password=a-password".to_owned();
        post(&setup.server, "/sign-in", "", form).await.expect(422);
        setup.session().await;
    }

    /// Anybody can begin a sign-in and come back with an invented code. The provider does not reject it
    /// while it is down.
    async fn an_outage_does_not_fill_the_audit_log(engine: Engine) {
        let setup = Setup::new(engine, "").await;
        setup.provider.change(|behavior| behavior.is_down = true);
        let answer = setup.begin().await;
        for _ in 0..10 {
            setup.complete_from(&answer, "2001:db8::1").await.expect(422);
        }
        for number in 2..12 {
            let address = format!("2001:db8::{number}");
            setup.complete_from(&setup.begin().await, &address).await.expect(422);
        }
        assert_eq!(setup.reasons().await, ["provider_unavailable"; 5]);
        setup.complete_from(&answer, "2001:db8:0:1::1").await.expect(422);
        assert_eq!(setup.reasons().await.len(), 6, "another network");
    }

    async fn an_office_that_signs_in_at_once_is_not_held_up(engine: Engine) {
        let setup = Setup::new(engine, "").await;
        let mut answers = Vec::new();
        for _ in 0..12 {
            answers.push(setup.begin().await);
        }
        let requests = answers.iter().map(|answer| {
            let request = setup.server.request(Method::GET, &answer.path);
            request.header("cookie", &answer.attempt).send()
        });
        let requests: tokio::task::JoinSet<_> = requests.collect();
        for response in requests.join_all().await {
            assert_eq!(response.unwrap().status(), 303);
        }
    }

    /// The browser of a signed-in member may stay signed in at the provider.
    async fn an_old_sign_in_at_the_provider_is_no_proof(engine: Engine) {
        let setup = Setup::new(engine, "").await;
        setup.set_signed_in(std::time::Duration::from_mins(11));
        let session = setup.session().await;
        assert!(!setup.is_proved(&session).await);
        let begun = post(&setup.server, &setup.path(), &session, String::new()).await;
        let refresh = begun.header("refresh").unwrap();
        assert!(refresh.contains("&prompt=login&max_age=600"), "{refresh}");
        setup.set_signed_in(std::time::Duration::from_mins(9));
        assert!(setup.is_proved(&setup.session().await).await);
    }

    /// A provider that knows the browser answers without asking, for example after a stranger signed
    /// out at an open browser.
    async fn a_sign_in_without_its_time_is_a_proof_only_if_it_was_repeated(engine: Engine) {
        let setup = Setup::new(engine, "").await;
        let session = setup.session().await;
        assert!(!setup.is_proved(&session).await);
        let session = setup.repeated(&session, "").await;
        assert!(setup.is_proved(&session).await);
    }

    async fn a_request_without_its_maximum_age_leads_to_no_proof(engine: Engine) {
        let setup = Setup::new(engine, "").await;
        let now = setup.server.clock.now().as_millis() / 1_000;
        setup.provider.change(|behavior| behavior.auth_time_on_request = Some(now));
        let session = setup.session().await;
        assert!(!setup.is_proved(&session).await);
        let session = setup.repeated(&session, "&prompt=login&max_age=600").await;
        assert!(!setup.is_proved(&session).await);
        let session = setup.repeated(&session, "").await;
        assert!(setup.is_proved(&session).await);
    }

    async fn the_first_password_of_an_owner_needs_a_proof(engine: Engine) {
        let setup = Setup::new(engine, "").await;
        let server = &setup.server;
        let session = setup.repeated(&setup.session().await, "").await;
        let team = get(server, "/team", &setup.owner).await.expect(200).text;
        let row = team.split("Role of new@example.com").next().unwrap();
        let member = row.rsplit("action=\"/team/").next().unwrap().split('/').next().unwrap();
        let choose = async |path: &str, session: &str| {
            submit(server, path, session, "current=x&password=correct-horse-battery").await
        };
        let (first, change) = ("/account/first-password", "/account/password");
        choose(first, &session).await.expect(404);
        let promote = format!("/team/{member}/role");
        submit(server, &promote, &setup.owner, "role=owner&confirmed=on").await.expect(303);
        setup.wait();
        let asked = choose(first, &session).await.expect(403);
        assert!(asked.text.contains("Confirm that it is you"), "{}", asked.text);
        choose(change, &session).await.expect(404);
        let chosen = choose(first, &setup.repeated(&session, "").await).await.expect(303);
        let session = cookie(&chosen, SESSION).unwrap();
        // The provider still vouches for the session, so it ends with the settings.
        get(server, "/account", &session).await.expect(200);
        submit(server, "/team/single-sign-on/remove", &session, "").await.expect(303);
        get(server, "/account", &session).await.expect(303);
    }
}
