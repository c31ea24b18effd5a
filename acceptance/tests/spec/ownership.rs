//! Ownership: a name excludes other organizations only after its owner has proven control over it.

use super::billing_appstore::{BUNDLE, notification, server as app_store_server, transaction};
use crate::command_line::tributary;
use crate::postbacks::{APP_STORE_ID, SKADNETWORK, list, post, skadnetwork};
use reqwest::Method;
use serde_json::{Value, json};
use tributary_domain::access::person::Email;
use tributary_domain::access::{Environment, Permission};
use tributary_testkit::{TestResponse, TestServer, on_both_engines};

const DOMAIN: &str = "go.example.com";
const APPLE: &str = "/.well-known/apple-app-site-association";

/// An organization with an app that claims [`DOMAIN`].
struct Claimant {
    key: String,
    app: String,
}

impl Claimant {
    async fn new(server: &TestServer, name: &str) -> Self {
        Self::with_key(server, name, server.full_key().await).await
    }

    async fn with_key(server: &TestServer, name: &str, key: String) -> Self {
        let app = server.app(&key).await;
        let ids = json!({
            "ios": {"teamId": "ABCDE12345", "bundleId": format!("com.example.{name}")}, "linkDomain": DOMAIN,
        });
        server.patch(&app, &key, ids).await.expect(200);
        Self { key, app }
    }

    async fn verify(&self, server: &TestServer) -> TestResponse {
        server
            .call(
                "POST",
                &format!("{}/link-domain/verify", self.app),
                &self.key,
                None,
            )
            .await
    }

    async fn verification(&self, server: &TestServer) -> Value {
        server.get(&self.app, &self.key).await.expect(200).data()["linkDomainVerification"].clone()
    }

    async fn link(&self, server: &TestServer, slug: &str) -> Value {
        let body = json!({"name": "A", "slug": slug});
        server
            .post(&format!("{}/links", self.app), &self.key, body)
            .await
            .expect(201)
            .data()
    }
}

/// Runs an `admin` command on the server's database. Returns its output, or its errors if it fails.
pub(super) fn run_command(server: &TestServer, line: &str) -> Result<String, String> {
    let (url, folder) = (server.database.url(), server.database.folder());
    let environment = [
        ("TRIBUTARY_DATABASE_URL", url.as_str()),
        ("TRIBUTARY_DATA_DIR", folder.to_str().unwrap()),
        ("TRIBUTARY_SECRET_KEY", &"07".repeat(32)),
    ];
    let arguments: Vec<&str> = ["admin"].into_iter().chain(line.split(' ')).collect();
    let output = tributary(&arguments, &environment);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr))
    }
}

/// Creates apps of two organizations with the same App Store id. Returns their paths and keys.
async fn create_rivals(server: &TestServer) -> [(String, String); 2] {
    let ids = json!({"name": "Runner", "ios": {"bundleId": BUNDLE, "appStoreId": APP_STORE_ID.to_string()}});
    let mut rivals = Vec::new();
    for name in ["squatter", "owner"] {
        let organization = server.organization(name).await;
        let key = server
            .key(organization, Permission::Full, Environment::Live)
            .await;
        let app = server
            .post("/api/v1/apps", &key, ids.clone())
            .await
            .expect(201)
            .data();
        rivals.push((format!("/api/v1/apps/{}", app["id"].as_str().unwrap()), key));
    }
    rivals.try_into().unwrap()
}

async fn postback_counts(server: &TestServer, rivals: &[(String, String); 2]) -> [usize; 2] {
    let [(squatter, squatters), (owner, owners)] = rivals;
    [
        list(server, squatter, squatters, "").await.len(),
        list(server, owner, owners, "").await.len(),
    ]
}

async fn apps_of_domain(server: &TestServer) -> Vec<String> {
    let answer = server
        .send(server.request(Method::GET, APPLE).header("host", DOMAIN))
        .await;
    if answer.status == 404 {
        return Vec::new();
    }
    let ids = answer.json()["applinks"]["details"][0]["appIDs"].clone();
    serde_json::from_value(ids).unwrap()
}

on_both_engines! {
    async fn a_squatter_cannot_keep_the_owner_from_a_domain(engine: Engine) {
        let server = TestServer::start(engine).await;
        let squatter = Claimant::new(&server, "squatter").await;
        let owner = Claimant::new(&server, "owner").await;
        assert_eq!(apps_of_domain(&server).await, [""; 0], "a claim serves nothing");
        let link = squatter.link(&server, "spring").await;
        assert_eq!(link["url"], "https://t.example.com/c/spring", "links stay at the service");

        // The squatter sees only its own record, which is not in the owner's zone.
        let (theirs, ours) = (squatter.verification(&server).await, owner.verification(&server).await);
        assert_eq!(theirs["recordName"], "_tributary.go.example.com");
        assert_ne!(theirs["recordValue"], ours["recordValue"]);
        server.publish_record(&owner.app, &owner.key).await;
        assert_eq!(squatter.verify(&server).await.expect(422).code(), "domain_not_verified");

        let app = owner.verify(&server).await.expect(200).data();
        assert_eq!(app["linkDomainVerification"]["verified"], true);
        assert_eq!(apps_of_domain(&server).await, ["ABCDE12345.com.example.owner"]);
        assert_eq!(owner.link(&server, "summer").await["url"], "https://go.example.com/c/summer");
        let tap = server.request(Method::GET, "/c/spring").header("host", DOMAIN);
        server.send(tap).await.expect(404);

        // The domain is owned now, even if the zone later shows the squatter's record.
        server.publish_record(&squatter.app, &squatter.key).await;
        assert_eq!(squatter.verify(&server).await.expect(409).code(), "domain_taken");
        assert_eq!(apps_of_domain(&server).await, ["ABCDE12345.com.example.owner"]);

        // Once the owner gives the domain up, it can be verified again.
        server.patch(&owner.app, &owner.key, json!({"linkDomain": null})).await.expect(200);
        assert_eq!(apps_of_domain(&server).await, [""; 0]);
        squatter.verify(&server).await.expect(200);
    }

    async fn another_domain_has_to_be_verified_again(engine: Engine) {
        let server = TestServer::start(engine).await;
        let owner = Claimant::new(&server, "owner").await;
        server.publish_record(&owner.app, &owner.key).await;
        owner.verify(&server).await.expect(200);
        let app = server.patch(&owner.app, &owner.key, json!({"linkDomain": DOMAIN, "name": "B"})).await.expect(200).data();
        assert_eq!(app["linkDomainVerification"]["verified"], true, "the domain is the same");
        let app = server.patch(&owner.app, &owner.key, json!({"linkDomain": "go.example.org"})).await.expect(200).data();
        assert_eq!(app["linkDomainVerification"]["verified"], false);
        assert_eq!(apps_of_domain(&server).await, [""; 0]);
    }

    async fn a_domain_from_before_the_upgrade_stays_verified(engine: Engine) {
        let server = TestServer::start(engine).await;
        let owner = Claimant::new(&server, "owner").await;
        server.publish_record(&owner.app, &owner.key).await;
        owner.verify(&server).await.expect(200);
        // Earlier versions did not store the state.
        let connection = server.database.direct_connection().await;
        connection.run("update apps set settings = replace(settings, ',\"link_domain_verified\":true', '')").await;
        assert_eq!(owner.verification(&server).await["verified"], true);
        assert_eq!(apps_of_domain(&server).await, ["ABCDE12345.com.example.owner"]);
    }

    async fn the_operator_verifies_and_releases_domains_without_dns(engine: Engine) {
        let server = TestServer::start(engine).await;
        let mut owners = Vec::new();
        for name in ["owner", "other"] {
            let organization = server.organization(name).await;
            let key = server.key(organization, Permission::Full, Environment::Live).await;
            owners.push(Claimant::with_key(&server, name, key).await);
        }
        let command = |line: &str| run_command(&server, line);
        command("domain verify go.example.com --organization other").unwrap();
        assert_eq!(apps_of_domain(&server).await, ["ABCDE12345.com.example.other"]);
        let taken = command("domain verify go.example.com --organization owner").unwrap_err();
        assert!(taken.contains("has verified this link domain"), "{taken}");
        let unclaimed = command("domain verify go.example.org --organization owner").unwrap_err();
        assert!(unclaimed.contains("set linkDomain"), "{unclaimed}");
        command("domain release go.example.com").unwrap();
        assert_eq!(apps_of_domain(&server).await, [""; 0]);
        let released = command("domain release go.example.com").unwrap_err();
        assert!(released.contains("no app has verified"), "{released}");
        command("domain verify go.example.com --organization owner").unwrap();
        assert_eq!(apps_of_domain(&server).await, ["ABCDE12345.com.example.owner"]);
        let log = server.get("/api/v1/audit-log", &owners[0].key).await.expect(200).data();
        assert_eq!(log[0]["actor"]["kind"], "operator", "{log}");
    }

    async fn accounts_elsewhere_are_not_revealed(engine: Engine) {
        let server = TestServer::start(engine).await;
        let (one, other) = (server.organization("One").await, server.organization("Other").await);
        let invitation = async |organization: &str, email: &str| {
            let line = format!("user create --organization {organization} --email {email}");
            let link = run_command(&server, &line).unwrap();
            link.trim().rsplit_once("/setup/").unwrap().1.to_owned()
        };
        let submit = async |path: String, body: String| {
            let request = server.request(Method::POST, &path).header("origin", "https://t.example.com");
            let request = request.header("content-type", "application/x-www-form-urlencoded");
            server.send(request.body(body)).await
        };
        let redeem = async |token: String, password: &str| submit(format!("/setup/{token}"), format!("password={password}")).await;
        let sign_in = async |password: &str, organization: &str| {
            let body = format!("email=you%40example.com&password={password}&organization={organization}");
            submit("/sign-in".to_owned(), body).await
        };
        redeem(invitation("One", "you@example.com").await, "the+first+password").await.expect(200);

        // Both invitations are answered alike, although one address has an account elsewhere.
        let mut pages = Vec::new();
        for email in ["you@example.com", "new@example.com"] {
            let page = redeem(invitation("Other", email).await, "the+second+password").await.expect(200);
            let shown = page.text.replace(email, "");
            let without_keys: Vec<&str> = shown.lines().filter(|line| !line.contains("ak_live_")).collect();
            pages.push(without_keys.join("\n"));
        }
        assert_eq!(pages[0], pages[1]);

        // Each password opens its own account, and neither opens the other's.
        assert_eq!(sign_in("a+wrong+password", "").await.status, 422);
        for (password, organization) in [("the+first+password", one), ("the+second+password", other)] {
            let answer = sign_in(password, "").await.expect(303);
            let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
            let team = server.send(server.request(Method::GET, "/team").header("cookie", cookie)).await.expect(200);
            assert_eq!(team.text.contains("new@example.com"), organization == other);
        }
        let again = run_command(&server, "user create --organization Other --email you@example.com").unwrap_err();
        assert!(again.contains("Another member of this organization"), "{again}");
    }

    async fn one_password_for_two_organizations_asks_which_one(engine: Engine) {
        let server = TestServer::start(engine).await;
        let email = Email::parse("you@example.com").unwrap();
        let submit = async |path: &str, body: String| {
            let request = server.request(Method::POST, path).header("origin", "https://t.example.com");
            let request = request.header("content-type", "application/x-www-form-urlencoded");
            server.send(request.body(body)).await
        };
        for name in ["One", "Other"] {
            server.organization(name).await;
            let line = format!("user create --organization {name} --email you@example.com");
            let link = run_command(&server, &line).unwrap();
            let path = format!("/setup/{}", link.trim().rsplit_once("/setup/").unwrap().1);
            submit(&path, "password=the+same+password".to_owned()).await.expect(200);
        }
        let body = "email=you%40example.com&password=the+same+password".to_owned();
        let page = submit("/sign-in", body.clone()).await.expect(200);
        assert!(page.header("set-cookie").is_none());
        for (user, _) in server.store.users_by_email(&email).await.unwrap() {
            assert!(page.text.contains(&user.organization.to_string()));
            submit("/sign-in", format!("{body}&organization={}", user.organization)).await.expect(303);
        }
        submit("/sign-in", format!("{body}&organization=org_unknown")).await.expect(200);
    }

    async fn a_squatter_cannot_keep_the_owner_from_an_app_store_id(engine: Engine) {
        let server = app_store_server(engine).await;
        let rivals = create_rivals(&server).await;
        post(&server, SKADNETWORK, skadnetwork(1).to_string()).await.expect(200);
        assert_eq!(postback_counts(&server, &rivals).await, [0, 0], "the id is contested");

        let owner = &rivals[1];
        let webhook = format!("/api/webhook/appstore/{}", owner.0.rsplit('/').next().unwrap());
        let forged = json!({"signedPayload": "e30.e30.e30"}).to_string();
        post(&server, &webhook, forged).await.expect(401);
        assert_eq!(postback_counts(&server, &rivals).await, [0, 0]);
        let signed = notification("TEST", None, "n-1", &transaction("t1", 0));
        let body = json!({"signedPayload": signed}).to_string();
        post(&server, &webhook, body.clone()).await.expect(200);
        assert_eq!(postback_counts(&server, &rivals).await, [0, 1], "the waiting postback is the owner's");
        post(&server, SKADNETWORK, skadnetwork(2).to_string()).await.expect(200);
        assert_eq!(postback_counts(&server, &rivals).await, [0, 2]);

        // The same notification proves nothing for the squatter, and no other organization can claim the id.
        let webhook = format!("/api/webhook/appstore/{}", rivals[0].0.rsplit('/').next().unwrap());
        post(&server, &webhook, body).await.expect(200);
        post(&server, SKADNETWORK, skadnetwork(3).to_string()).await.expect(200);
        assert_eq!(postback_counts(&server, &rivals).await, [0, 3]);
        let late = json!({"name": "Late", "ios": {"appStoreId": APP_STORE_ID.to_string()}});
        let answer = server.post("/api/v1/apps", &server.full_key().await, late).await.expect(409);
        assert_eq!(answer.code(), "store_id_taken");
    }

    async fn an_old_notification_proves_nothing(engine: Engine) {
        let server = app_store_server(engine).await;
        let rivals = create_rivals(&server).await;
        server.clock.advance(std::time::Duration::from_hours(8 * 24));
        let webhook = format!("/api/webhook/appstore/{}", rivals[0].0.rsplit('/').next().unwrap());
        let signed = notification("TEST", None, "n-1", &transaction("t1", 0));
        post(&server, &webhook, json!({"signedPayload": signed}).to_string()).await.expect(200);
        post(&server, SKADNETWORK, skadnetwork(1).to_string()).await.expect(200);
        assert_eq!(postback_counts(&server, &rivals).await, [0, 0]);
    }

    async fn the_operator_assigns_app_store_ids(engine: Engine) {
        let server = app_store_server(engine).await;
        let rivals = create_rivals(&server).await;
        post(&server, SKADNETWORK, skadnetwork(1).to_string()).await.expect(200);
        for (number, organization, expected) in [(2, "squatter", [2, 0]), (3, "owner", [2, 1])] {
            run_command(&server, &format!("store-id assign {APP_STORE_ID} --organization {organization}")).unwrap();
            post(&server, SKADNETWORK, skadnetwork(number).to_string()).await.expect(200);
            assert_eq!(postback_counts(&server, &rivals).await, expected);
        }
        let unclaimed = run_command(&server, "store-id assign 1 --organization owner").unwrap_err();
        assert!(unclaimed.contains("set ios.appStoreId"), "{unclaimed}");
    }
}
