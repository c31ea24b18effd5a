//! Providers for single sign-on in the operator's network need a setting that allows nothing else.

use reqwest::{Client, Response};
use tributary_testkit::{Engine, ServerProcess, TestDatabase};

const FORM_TOKEN: &str = "name=\"formToken\" value=\"";

/// An owner in the dashboard of a server.
struct Owner {
    server: ServerProcess,
    client: Client,
    cookie: String,
    token: String,
}

impl Owner {
    /// Starts a server with a setting, and creates the first owner.
    async fn with(database: &TestDatabase, setting: &str) -> Self {
        let server = ServerProcess::start_with(database, &[(setting, "true")]).await;
        let output = server.output();
        let link = output
            .split_whitespace()
            .find(|word| word.contains("/setup/setup_"));
        let path = link
            .expect("the first start prints a link")
            .strip_prefix(server.base_url());
        let policy = reqwest::redirect::Policy::none();
        let client = Client::builder()
            .no_proxy()
            .redirect(policy)
            .build()
            .unwrap();
        let mut owner = Self {
            server,
            client,
            cookie: String::new(),
            token: String::new(),
        };
        let form = "email=you%40example.com&password=a+lazy+fox+in+the+coal+mine";
        let created = owner.post(path.unwrap(), form).await;
        let cookie = created.headers()["set-cookie"].to_str().unwrap();
        cookie
            .split(';')
            .next()
            .unwrap()
            .clone_into(&mut owner.cookie);
        let url = format!("{}/account", owner.server.base_url());
        let page = owner
            .client
            .get(url)
            .header("cookie", &owner.cookie)
            .send()
            .await
            .unwrap();
        let page = page.text().await.unwrap();
        let token = page.split(FORM_TOKEN).nth(1).expect("a form");
        token
            .split('"')
            .next()
            .unwrap()
            .clone_into(&mut owner.token);
        owner
    }

    async fn post(&self, path: &str, form: &str) -> Response {
        let request = self
            .client
            .post(format!("{}{path}", self.server.base_url()))
            .header("origin", self.server.base_url())
            .header("cookie", &self.cookie)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(format!("formToken={}&{form}", self.token));
        request.send().await.unwrap()
    }

    async fn save(&self, issuer: &str) -> u16 {
        let form = format!(
            "issuer={issuer}&clientId=x&clientSecret=x&emailDomains=example.com&defaultRole=viewer"
        );
        self.post("/team/single-sign-on", &form)
            .await
            .status()
            .as_u16()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_setting_for_alerts_does_not_open_the_network_to_providers() {
    for (setting, explanation, http_status) in [
        (
            "TRIBUTARY_WEBHOOKS__ALLOW_PRIVATE_ADDRESSES",
            "in a private network",
            422,
        ),
        (
            "TRIBUTARY_SINGLE_SIGN_ON__ALLOW_PRIVATE_ADDRESSES",
            "cannot connect",
            303,
        ),
    ] {
        let database = TestDatabase::new(Engine::Sqlite).await;
        let owner = Owner::with(&database, setting).await;
        assert_eq!(owner.save("https://127.0.0.1:1").await, 303, "{setting}");
        let tested = owner.post("/team/single-sign-on/test", "").await;
        let page = tested.text().await.unwrap();
        assert!(page.contains(explanation), "{setting}: {page}");
        assert_eq!(
            owner.save("http://127.0.0.1:1").await,
            http_status,
            "{setting}"
        );
    }
}
