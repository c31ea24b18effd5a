//! The instance that every run starts with: an app with links, clicks, keys and integrations.
//!
//! It is set up once per process of the tests, without faults, and copied for each run.

use crate::disk::{DATABASE, Disk};
use crate::network::Networks;
use crate::node::{Call, Node, call};
use crate::scenario::{Scenario, Weakening};
use crate::vfs;
use crate::world::World;
use axum::Router;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use tributary_domain::access::{Actor, Environment, Permission};
use tributary_domain::vocabulary::id::OrganizationId;
use tributary_domain::vocabulary::text::Name;
use tributary_store::{NewKey, Organization};

/// URL parameters of the networks' click ids.
pub(crate) const CLICK_PARAMETERS: [&str; 4] = ["fbclid", "gclid", "ttclid", "oppref"];
/// The networks' names.
pub(crate) const NETWORKS: [&str; 4] = ["network_a", "network_b", "network_c", "network_d"];
/// User agent of an Android phone, which gets its click id in the store URL.
pub(crate) const PHONE: &str = "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 \
     (KHTML, like Gecko) Chrome/141.0.0.0 Mobile Safari/537.36";
/// User agent of a browser.
pub(crate) const BROWSER: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) \
     AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Mobile/15E148 Safari/604.1";
/// Origin of the website.
pub(crate) const SHOP: &str = "https://shop.example.com";
/// Value of the `Authorization` header of the billing provider.
pub(crate) const BILLING_SECRET: &str = "Bearer of a secret, 0123456789";

/// What clients need to know of the instance.
#[derive(Debug, Clone)]
pub(crate) struct Instance {
    pub(crate) organization: OrganizationId,
    pub(crate) live_key: String,
    pub(crate) test_key: String,
    /// Id of the app.
    pub(crate) app: String,
    pub(crate) live_sdk_key: String,
    pub(crate) test_sdk_key: String,
    /// Ids of the store links, one per network.
    pub(crate) links: Vec<String>,
    /// Ids of clicks on the website's link, one per network.
    pub(crate) clicks: Vec<String>,
}

impl Instance {
    /// Returns the API path of the app.
    pub(crate) fn app_path(&self) -> String {
        format!("/api/v1/apps/{}", self.app)
    }
}

/// The instance and its database file.
#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) instance: Instance,
    database: Vec<u8>,
}

impl Template {
    /// Returns the template, which the first call sets up.
    pub(crate) fn get() -> &'static Self {
        static TEMPLATE: OnceLock<Template> = OnceLock::new();
        TEMPLATE.get_or_init(create)
    }

    /// Writes the database into a folder.
    pub(crate) fn restore(&self, folder: &Path) -> std::io::Result<()> {
        std::fs::write(folder.join(DATABASE), &self.database)
    }
}

fn create() -> Template {
    vfs::register();
    let scenario = Scenario {
        seed: 0,
        clients: 0,
        leak_percent: 0,
        log_pages_max: 4_000,
        elements: Vec::new(),
    };
    let world = World::new(scenario, Weakening::None, false);
    let folder = tempfile::tempdir().expect("a temporary folder");
    vfs::set_disk(Some(Arc::new(Disk::new(world.clone(), folder.path()))));
    let runtime = crate::run::runtime();
    let instance = runtime.block_on(async {
        world.start_process();
        let node = Node::start(&world, &Networks::new(), folder.path());
        let node = node.expect("a new database");
        let instance = set_up(&world, &node).await;
        node.stop().await;
        instance
    });
    drop(runtime);
    vfs::set_disk(None);
    let database = std::fs::read(folder.path().join(DATABASE)).expect("read the database");
    Template { instance, database }
}

async fn set_up(world: &Arc<World>, node: &Node) -> Instance {
    let runtime = world.runtime();
    let organization = OrganizationId::new(runtime.now(), runtime.random_bytes());
    let new = Organization {
        id: organization,
        name: Name::parse("Example").expect("a valid name"),
        created_at: runtime.now(),
    };
    let origin = || runtime.origin(Actor::Operator, None, None);
    let stored = node.store.create_organization(new, origin()).await;
    stored.expect("create an organization");
    let mut keys = Vec::new();
    for environment in [Environment::Live, Environment::Test] {
        let (key, text) =
            runtime.new_private_key(organization, "Simulation", Permission::Full, environment);
        let digest = text.digest();
        let stored = node.store.create_key(NewKey { key, digest }, origin());
        stored.await.expect("create a key");
        keys.push(text.reveal().to_owned());
    }
    let [live_key, test_key] = keys.try_into().expect("two keys");
    set_up_app(&node.router, organization, live_key, test_key).await
}

async fn set_up_app(
    router: &Router,
    organization: OrganizationId,
    live_key: String,
    test_key: String,
) -> Instance {
    let send = async |method, path: &str, body: Value| {
        let request = Call::new(method, path).key(&live_key).json(body);
        let answer = call(router, &request).await;
        assert!(answer.status.is_success(), "{path}: {answer:?}");
        answer.body["data"].clone()
    };
    let text = |value: &Value| value.as_str().expect("a string").to_owned();
    let fields = json!({"name": "Shop", "attribution": {"fraud": "refuse"}});
    let app = send("POST", "/api/v1/apps", fields).await;
    let path = format!("/api/v1/apps/{}", text(&app["id"]));
    let settings = json!({
        "webEvents": {"enabled": true},
        "billing": {"revenuecat": {"secret": BILLING_SECRET}},
        "android": {"packageName": "com.example"},
    });
    let shown = send("PATCH", &path, settings).await;
    let mut links = Vec::new();
    for network in NETWORKS {
        let fields = json!({
            "name": network, "network": network,
            "androidUrl": "https://play.google.com/store/apps/details?id=com.example",
        });
        let link = send("POST", &format!("{path}/links"), fields).await;
        links.push(text(&link["id"]));
    }
    let funnel = json!({
        "name": "Website", "type": "web_funnel", "destinationUrl": format!("{SHOP}/start"),
    });
    let funnel = send("POST", &format!("{path}/links"), funnel).await;
    for (network, change) in NETWORKS.iter().zip(integrations()) {
        send("PATCH", &format!("{path}/integrations/{network}"), change).await;
    }
    let mut clicks = Vec::new();
    for parameter in CLICK_PARAMETERS {
        let tap = format!("/w/{}?{parameter}=E.C.P.1", text(&funnel["id"]));
        let request = Call::new("GET", tap).header("user-agent", BROWSER);
        let answer = call(router, &request).await;
        let location = answer.location.clone().unwrap_or_default();
        let click = location.split_once("ar_click_id=");
        let (_, click) = click.unwrap_or_else(|| panic!("a redirect with a click: {answer:?}"));
        clicks.push(click.split('&').next().unwrap_or_default().to_owned());
    }
    Instance {
        organization,
        app: text(&app["id"]),
        live_sdk_key: text(&shown["sdk"]["liveKey"]),
        test_sdk_key: text(&shown["sdk"]["testKey"]),
        live_key,
        test_key,
        links,
        clicks,
    }
}

/// Returns the settings of the integrations, one per network.
fn integrations() -> [Value; 4] {
    let actions = json!({
        "install": "101", "purchase": "102", "sign_up": "103", "start_trial": "104",
        "qualified_trial": "105", "subscribe": "106",
    });
    [
        json!({
            "enabled": true, "settings": {"pixelId": "900001"},
            "credentials": {"accessToken": "EAAB0123456789abcdef"},
        }),
        json!({
            "enabled": true,
            "settings": {
                "operatingAccountId": "900002", "clientId": "900002-x.apps.example",
                "conversionActions": actions,
            },
            "credentials": {
                "clientSecret": "client-secret-12345", "refreshToken": "refresh-token-12345",
            },
        }),
        json!({
            "enabled": true, "settings": {"pixelCode": "900003"},
            "credentials": {"accessToken": "c-token-0123456789"},
        }),
        json!({
            "enabled": true, "settings": {"pixelId": "900004"},
            "credentials": {"apiKey": "d-key-0123456789"},
        }),
    ]
}
