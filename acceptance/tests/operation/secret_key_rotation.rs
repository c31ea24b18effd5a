//! `tributary secret-key rotate` while servers run: nothing is lost, and the old key opens nothing
//! afterwards.

use super::sealed_values::{OpenedValues, open_all};
use crate::networks::{ServerWithSimulator, with_current_time};
use crate::website::Website;
use reqwest::Client;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tributary_domain::app::AppSecret;
use tributary_domain::attestation::samples::{PLAY_DECRYPTION_KEY, play_verification_key};
use tributary_domain::keyring::alert::{ALERT_SECRET_PLACE, AlertSecret};
use tributary_domain::keyring::{Keyring, SecretKeyId, check_value};
use tributary_domain::vocabulary::digest::hex;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_simulator::SimulatedNetwork;
use tributary_store::records::SEALED_COLUMNS;
use tributary_testkit::{DirectConnection, Engine, ServerProcess, TestDatabase, on_both_engines};

/// The key of all processes in tests.
const OLD: [u8; 32] = [7; 32];
const NEW: [u8; 32] = [8; 32];
/// Apps with a credential: more than two batches.
const APPS: usize = 220;
/// Name of the app whose credential is locked while the rotation is killed.
const LOCKED_APP: &str = "App 219";
/// Taps of each client before the rotation, whose click ids must stay valid.
const TAPS_BEFORE: u64 = 4;
/// Time until a node has done what it does every second.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// Settings of a node that knows both keys, and of one that knows the new one only.
struct KeySettings {
    next: String,
}

impl KeySettings {
    fn new() -> Self {
        Self { next: hex(&NEW) }
    }

    fn both(&self) -> [(&str, &str); 1] {
        [("TRIBUTARY_NEXT_SECRET_KEY", &self.next)]
    }

    fn new_only(&self) -> [(&str, &str); 1] {
        [("TRIBUTARY_SECRET_KEY", &self.next)]
    }
}

/// Runs the command with both keys. Returns what it printed.
fn rotate(database: &TestDatabase, settings: &[(&str, &str)]) -> Result<String, String> {
    let arguments = ["secret-key", "rotate"];
    tokio::task::block_in_place(|| ServerProcess::run_with(database, settings, &arguments))
}

fn spawn_rotation(database: &TestDatabase, settings: &[(&str, &str)]) -> Child {
    let mut command = ServerProcess::command(database, &["secret-key", "rotate"]);
    let command = command.envs(settings.iter().copied());
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Returns what `tributary doctor` prints, with or without errors.
fn doctor(database: &TestDatabase, settings: &[(&str, &str)]) -> String {
    let mut command = ServerProcess::command(database, &["doctor"]);
    let command = command.envs(settings.iter().copied());
    let output = tokio::task::block_in_place(|| command.output().unwrap());
    String::from_utf8(output.stdout).unwrap()
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Returns the stored progress of the rotation: the number of values that were encrypted again.
async fn progress(direct: &DirectConnection) -> Option<u64> {
    let sql = match direct.engine() {
        Engine::Sqlite => "select hex(value) from instance where name = 'secret_rotation'",
        Engine::Postgres => {
            "select encode(value, 'hex') from instance where name = 'secret_rotation'"
        }
    };
    let rows = direct.rows(sql).await;
    let text = rows.first()?.first()?.clone()?;
    u64::from_str_radix(&text[text.len() - 16..], 16).ok()
}

/// Creates the first account, for rows that belong to a user.
async fn redeem_first_link(server: &ServerProcess) {
    let output = server.output();
    let link = output
        .split_whitespace()
        .find(|word| word.contains("/setup/setup_"));
    let client = Client::builder().no_proxy().build().unwrap();
    let request = client
        .post(link.expect("the first start prints a link"))
        .header("origin", server.base_url())
        .header("content-type", "application/x-www-form-urlencoded")
        .body("email=you%40example.com&password=a+long+enough+password");
    assert!(request.send().await.unwrap().status().is_success());
}

/// Stores a second factor and a provider for single sign-on, whose pages need an authenticator and a
/// provider.
async fn insert_person_secrets(direct: &DirectConnection) {
    let id = |column: &str, table: &str| {
        let text = match direct.engine() {
            Engine::Sqlite => format!("hex({column})"),
            Engine::Postgres => format!("{column}::text"),
        };
        format!("select {text} from {table}")
    };
    let first = async |sql: String| direct.rows(&sql).await[0][0].clone().unwrap();
    let user = first(id("user_id", "users"))
        .await
        .replace('-', "")
        .to_lowercase();
    let organization = first(id("organization_id", "organizations")).await;
    let organization = organization.replace('-', "").to_lowercase();
    let old = Keyring::new(OLD);
    let organization_id = read_id(&organization);
    let factor = tributary_domain::access::factor::secret_scope(
        tributary_domain::vocabulary::id::OrganizationId::from_bytes(organization_id),
        tributary_domain::vocabulary::id::UserId::from_bytes(read_id(&user)),
        tributary_domain::vocabulary::id::FactorId::from_bytes([5; 16]),
    );
    let factor: Vec<&str> = factor.iter().map(String::as_str).collect();
    let factor = hex(old.seal(&factor, [1; 24], b"totp").as_bytes());
    let text = tributary_domain::vocabulary::id::OrganizationId::from_bytes(organization_id);
    let text = text.to_string();
    let scope = tributary_domain::access::single_sign_on::secret_scope(&text);
    let client_secret = hex(old.seal(&scope, [2; 24], b"client").as_bytes());
    let factor_id = "05".repeat(16);
    let bytes = |digits: &str| match direct.engine() {
        Engine::Sqlite => format!("x'{digits}'"),
        Engine::Postgres => format!("decode('{digits}', 'hex')"),
    };
    let uuid = |digits: &str| match direct.engine() {
        Engine::Sqlite => format!("x'{digits}'"),
        Engine::Postgres => format!("'{digits}'::uuid"),
    };
    let no = match direct.engine() {
        Engine::Sqlite => "0",
        Engine::Postgres => "false",
    };
    direct
        .run(&format!(
            "insert into factors (factor_id, user_id, kind, name, created_at, sealed_secret)
             values ({}, {}, 'totp', 'Phone', 1, {});
             insert into single_sign_on (organization_id, issuer, client_id, client_secret,
                 email_domains, default_role, allows_passwords, created_at, updated_at, revision)
             values ({}, 'https://id.example.com', 'c', {}, '', 'viewer', {no}, 1, 1, 1)",
            uuid(&factor_id),
            uuid(&user),
            bytes(&factor),
            uuid(&organization),
            bytes(&client_secret),
        ))
        .await;
}

fn read_id(digits: &str) -> [u8; 16] {
    let bytes = tributary_domain::vocabulary::digest::from_hex(digits).unwrap();
    bytes.try_into().unwrap()
}

/// Sets a secret of every kind that the API sets.
async fn set_secrets(site: &Website) {
    let header = "a long authorization value";
    let secrets = json!({
        "android": {
            "playDecryptionKey": PLAY_DECRYPTION_KEY,
            "playVerificationKey": play_verification_key(),
        },
        "attribution": {"socialReferrerKey": "a1b2c3d4"},
        "billing": {
            "revenuecat": {"secret": header, "signingSecret": "a long signing secret"},
            "stripe": {"secret": "whsec_0123456789abcdef", "testSecret": "whsec_fedcba9876543210"},
            "adapty": {"secret": header, "testSecret": header},
            "qonversion": {"secret": header, "testSecret": header},
        },
    });
    site.call("PATCH", "", secrets).await.expect(200);
    for provider in [
        "revenuecat",
        "superwall",
        "superwall",
        "adapty",
        "qonversion",
    ] {
        let path = format!("/billing/{provider}/secret");
        site.call("POST", &path, json!({})).await.expect(201);
    }
    let notice = json!({
        "name": "N", "channel": "webhook", "url": "https://hooks.example.com/x",
        "topic": "daily_summary", "hour": 8,
    });
    site.call("POST", "/notices", notice).await.expect(201);
    // The replaced secrets are stored, too.
    let identity = "/identity/secret";
    for path in [identity, identity, "/alert-webhook/rotate"] {
        site.call("POST", path, json!({})).await.expect(201);
    }
    let source = json!({
        "enabled": false, "settings": {"accountId": "1234567890"},
        "credentials": {"accessToken": "EAAB0123456789abcdef"},
    });
    site.call("PUT", "/cost-sources/network_a", source)
        .await
        .expect(200);
}

/// Creates apps with a credential.
async fn create_apps(site: &Website) {
    let mut tasks = JoinSet::new();
    for client in 0..8 {
        let site = site.clone();
        tasks.spawn(async move {
            for number in (client..APPS).step_by(8) {
                let url = format!("{}/api/v1/apps", site.base);
                let body = json!({"name": format!("App {number}")});
                let request = site.client.post(url).bearer_auth(&site.key);
                let request = request.header("content-type", "application/json");
                let created = request.body(body.to_string()).send().await.unwrap();
                let created: Value = serde_json::from_str(&created.text().await.unwrap()).unwrap();
                let id = created["data"]["id"].as_str().unwrap().to_owned();
                let of = Website {
                    app: format!("/api/v1/apps/{id}"),
                    ..site.clone()
                };
                set_token(&of, number).await.expect(200);
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
}

async fn set_token(site: &Website, number: usize) -> tributary_testkit::TestResponse {
    let change = json!({"credentials": {"accessToken": format!("EAAB0123456789abcdef{number}")}});
    site.call("PATCH", "/integrations/network_a", change).await
}

/// What the load did.
#[derive(Default)]
struct Load {
    taps: AtomicU64,
    installs: AtomicU64,
    changes: AtomicU64,
    /// Click ids in the order in which visitors got them.
    clicks: Mutex<Vec<String>>,
    is_over: AtomicBool,
}

/// Sends taps, `configure` calls and changes of a credential through a node until the load is over.
/// A change may be refused while the key is replaced, but nothing else fails.
async fn send_load(site: Website, node: usize, load: Arc<Load>) {
    let app = site.call("GET", "", Value::Null).await.expect(200).data();
    let sdk_key = app["sdk"]["liveKey"].as_str().unwrap().to_owned();
    for number in 0.. {
        if load.is_over.load(Ordering::Relaxed) {
            break;
        }
        let click = site.tap(&site.link, &format!("fbclid=l{number}")).await;
        load.clicks.lock().unwrap().push(click);
        load.taps.fetch_add(1, Ordering::Relaxed);
        let body = json!({"deviceId": format!("device-{node}-{number}"), "platform": "ios"});
        let install = site
            .client
            .post(format!("{}/api/track/configure", site.base));
        let install = install.header("x-tributary-key", &sdk_key);
        let install = install
            .header("content-type", "application/json")
            .body(body.to_string());
        assert_eq!(install.send().await.unwrap().status(), 200);
        load.installs.fetch_add(1, Ordering::Relaxed);
        let change =
            json!({"credentials": {"accessToken": format!("EAAB0123456789abcdef{number}")}});
        let changed = site.call("PATCH", "/integrations/network_c", change).await;
        match changed.status.as_u16() {
            200 => load.changes.fetch_add(1, Ordering::Relaxed),
            503 => 0,
            _ => panic!("{changed:?}"),
        };
        tokio::time::sleep(PAUSE).await;
    }
}

/// Waits until the simulator has counted a new purchase, which needs the network's credential.
async fn deliver(simulated: &ServerWithSimulator, site: &Website, account: &str, id: &str) {
    let event = with_current_time(&site.purchase(id, "1.00"));
    site.deliver(&event).await;
    let begun = Instant::now();
    let has_arrived = || {
        let received = simulated.received(SimulatedNetwork::NetworkA, account);
        received
            .iter()
            .any(|one| one["counted"] == 1 && one.to_string().contains(id))
    };
    while !has_arrived() {
        assert!(
            begun.elapsed() < FOLLOWED_WITHIN * 2,
            "{id} was not delivered"
        );
        tokio::time::sleep(PAUSE).await;
    }
}

/// Keeps the rotation from changing the credential of one app, so that it cannot finish. The rotation
/// waits for the row on PostgreSQL, and counts combinations of rows for minutes on SQLite.
async fn lock_credential(direct: &DirectConnection) {
    let app = format!("(select app_id from apps where name = '{LOCKED_APP}')");
    direct
        .run(&match direct.engine() {
            Engine::Sqlite => {
                let rows = ["integrations"; 6].join(", ");
                format!(
                    "create trigger locked before update of credentials on integrations
                     when old.app_id = {app} begin select count(*) from {rows}; end"
                )
            }
            Engine::Postgres => {
                format!("begin; select 1 from integrations where app_id = {app} for update")
            }
        })
        .await;
}

async fn unlock_credential(direct: &DirectConnection) {
    let sql = match direct.engine() {
        Engine::Sqlite => "drop trigger locked",
        Engine::Postgres => "rollback",
    };
    direct.run(sql).await;
}

/// Waits until the load has created enough clicks. Returns their ids.
async fn clicks_before(load: &Load, clients: usize) -> Vec<String> {
    let begun = Instant::now();
    let enough = usize::try_from(TAPS_BEFORE).unwrap() * clients;
    loop {
        let clicks = load.clicks.lock().unwrap().clone();
        if clicks.len() >= enough {
            return clicks;
        }
        assert!(begun.elapsed() < FOLLOWED_WITHIN, "{} clicks", clicks.len());
        tokio::time::sleep(PAUSE).await;
    }
}

/// Checks that the values are of every kind.
fn expect_every_kind(values: &OpenedValues) {
    let columns: BTreeSet<_> = values
        .keys()
        .map(|(table, column, _)| (*table, *column))
        .collect();
    let expected = SEALED_COLUMNS.iter().map(|one| (one.table, one.column));
    assert_eq!(columns, expected.collect());
    let fields = values.keys().filter(|(table, ..)| *table == "app_secrets");
    let fields: BTreeSet<&str> = fields.map(|(_, _, scope)| scope[3].as_str()).collect();
    let secrets = AppSecret::ALL.iter().map(|secret| secret.sealed_field());
    // The App Store has no secret.
    let expected = secrets.filter(|field| *field != "billing.appstore");
    assert_eq!(fields, expected.collect());
}

/// Checks that the values are those before the rotation, apart from the credential that the load
/// changes, and the alert secrets that were derived from the old key.
fn expect_kept(before: &OpenedValues, after: &OpenedValues) {
    let (mut kept, mut derived) = (0, 0);
    for (place, secrets) in after {
        let (_, _, scope) = place;
        if scope.get(2).is_some_and(|owner| owner == "network_c") {
            let mut secrets = secrets.iter();
            assert!(
                secrets.all(|one| one.starts_with(b"EAAB0123456789abcdef")),
                "{place:?}"
            );
        } else if let Some(stored) = before.get(place) {
            assert!(secrets == stored, "{place:?} changed");
            kept += 1;
        } else {
            assert_eq!(scope[2..], [ALERT_SECRET_PLACE.0, ALERT_SECRET_PLACE.1]);
            let of = (
                OrganizationId::parse(&scope[0]).unwrap(),
                AppId::parse(&scope[1]).unwrap(),
            );
            let expected = Keyring::new(OLD).alert_secret(of, None).unwrap();
            let mut secrets = secrets.iter().cloned();
            let secret = AlertSecret::from_bytes(secrets.next().unwrap().try_into().unwrap());
            assert!(
                secret == expected && secrets.next().is_none(),
                "{place:?} changed"
            );
            derived += 1;
        }
    }
    assert_eq!((kept, derived), (before.len(), APPS));
}

async fn signing_secret(site: &Website) -> String {
    let shown = site
        .call("GET", "/alert-webhook", Value::Null)
        .await
        .expect(200);
    shown.data()["signingSecret"].as_str().unwrap().to_owned()
}

/// Returns the columns with values that begin like those that are encrypted with a key.
async fn columns_encrypted_with(direct: &DirectConnection, key: [u8; 32]) -> BTreeSet<String> {
    use base64::Engine as _;
    let mut start = vec![2];
    start.extend_from_slice(&check_value(&key)[..SecretKeyId::BYTES]);
    let text = base64::engine::general_purpose::STANDARD.encode(&start);
    let start = hex(&start);
    let catalog = match direct.engine() {
        Engine::Sqlite => {
            "select m.name, c.name from sqlite_schema m, pragma_table_info(m.name) c
             where m.type = 'table' and m.name not like 'sqlite_%' and c.type in ('BLOB', 'TEXT')"
        }
        Engine::Postgres => {
            "select table_name, column_name from information_schema.columns
             where table_schema = current_schema() and data_type in ('bytea', 'text')"
        }
    };
    let mut found = BTreeSet::new();
    for row in direct.rows(catalog).await {
        let (table, column) = (row[0].clone().unwrap(), row[1].clone().unwrap());
        let condition = match direct.engine() {
            Engine::Sqlite => format!(
                "instr(lower(hex({column})), '{start}') = 1 or instr({column}, '{text}') > 0"
            ),
            Engine::Postgres => format!(
                "strpos({column}::text, '\\x{start}') = 1 or strpos({column}::text, '{text}') > 0"
            ),
        };
        let sql = format!("select count(*) from {table} where {condition}");
        if direct.rows(&sql).await[0][0].as_deref() != Some("0") {
            found.insert(format!("{table}.{column}"));
        }
    }
    found
}

/// Files that read encrypted values from a database, with the columns that they read. A new one needs
/// an entry in `SEALED_COLUMNS`, so that a rotation finds its values.
const READERS: [(&str, &[&str]); 10] = [
    ("recording/src/admin/secret_keys.rs", &["instance.value"]),
    ("store/src/records/factor.rs", &["factors.sealed_secret"]),
    (
        "store/src/records/integration.rs",
        &["integrations.credentials", "cost_sources.credentials"],
    ),
    ("store/src/records/notice.rs", &["notices.url"]),
    ("store/src/records/sealed.rs", &[]),
    (
        "store/src/records/single_sign_on.rs",
        &["single_sign_on.client_secret"],
    ),
    ("store-ENGINE/src/apps.rs", &["app_secrets.sealed"]),
    ("store-ENGINE/src/billing/mod.rs", &["app_secrets.sealed"]),
    ("store-ENGINE/src/devices/mod.rs", &["app_secrets.sealed"]),
    (
        "store-ENGINE/src/secret_keys.rs",
        &["alert_secrets.sealed", "alert_secrets.previous"],
    ),
];

/// Returns the columns that a rotation encrypts again.
fn rotated_columns() -> BTreeSet<String> {
    let columns = SEALED_COLUMNS.iter();
    let columns = columns.map(|column| format!("{}.{}", column.table, column.column));
    columns.chain(["instance.value".to_owned()]).collect()
}

/// Finds the files below a folder that turn stored bytes into encrypted values.
fn find_readers(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // The contract suite stores values that it has made up.
            if !path.ends_with("store/src/contract") {
                find_readers(&path, found);
            }
        } else if std::fs::read_to_string(&path)
            .is_ok_and(|text| text.contains("SealedSecret::from_bytes"))
        {
            let path = path.to_str().unwrap();
            let (_, path) = path.rsplit_once("/crates/").unwrap();
            found.insert(
                path.replace("-sqlite", "-ENGINE")
                    .replace("-postgres", "-ENGINE"),
            );
        }
    }
}

#[test]
fn every_column_with_encrypted_values_is_rotated() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let mut found = BTreeSet::new();
    for name in ["recording", "store", "store-sqlite", "store-postgres"] {
        find_readers(&crates.join(name).join("src"), &mut found);
    }
    let known = |file: &String| READERS.iter().any(|(reader, _)| file.starts_with(reader));
    let unknown: Vec<&String> = found.iter().filter(|file| !known(file)).collect();
    assert!(unknown.is_empty(), "not in READERS: {unknown:?}");
    let read = READERS.iter().flat_map(|(_, columns)| *columns);
    let read: BTreeSet<String> = read.map(|&column| column.to_owned()).collect();
    assert_eq!(read, rotated_columns());
}

on_both_engines! {
    async fn a_rotation_under_load_survives_kills_and_loses_nothing(engine: Engine) {
        let settings = KeySettings::new();
        let mut simulated = ServerWithSimulator::start(engine).await;
        redeem_first_link(&simulated.server).await;
        let mut site = simulated.site(SimulatedNetwork::NetworkA).await;
        let account = simulated.connect(&site, SimulatedNetwork::NetworkA, 1).await;
        set_secrets(&site).await;
        create_apps(&site).await;
        let direct = simulated.database.direct_connection().await;
        insert_person_secrets(&direct).await;
        let secret = signing_secret(&site).await;
        let first_click = site.click.clone();
        deliver(&simulated, &site, &account, "before").await;

        // The running server does not know the new key.
        let refused = rotate(&simulated.database, &settings.both()).unwrap_err();
        assert!(refused.contains("do not know next_secret_key"), "{refused}");
        simulated.server.kill_now();
        direct.run("delete from key_holders").await;
        simulated.server =
            ServerWithSimulator::serve_with(&simulated.database, &simulated.simulator, &settings.both()).await;
        let mut nodes = Vec::new();
        if engine == Engine::Postgres {
            let (database, simulator) = (&simulated.database, &simulated.simulator);
            nodes.push(ServerWithSimulator::serve_with(database, simulator, &settings.both()).await);
        }
        site = site.through(simulated.server.base_url());

        let before = open_all(&*simulated.database.open().await, OLD, NEW).await;
        expect_every_kind(&before);
        let load = Arc::new(Load::default());
        let mut clients = JoinSet::new();
        for (number, node) in std::iter::once(&simulated.server).chain(&nodes).enumerate() {
            let site = site.through(node.base_url());
            clients.spawn(send_load(site, number, load.clone()));
        }
        let clicks = clicks_before(&load, clients.len()).await;
        // Killed before it has encrypted anything, and again in the middle.
        let begun = Instant::now();
        let first = spawn_rotation(&simulated.database, &settings.both());
        while progress(&direct).await.is_none() {
            assert!(begun.elapsed() < FOLLOWED_WITHIN, "the rotation did not begin");
            tokio::time::sleep(PAUSE).await;
        }
        kill(first);
        assert_eq!(progress(&direct).await, Some(0));
        let doctor = doctor(&simulated.database, &settings.both());
        let store = simulated.database.open().await;
        lock_credential(&direct).await;
        let second = spawn_rotation(&simulated.database, &settings.both());
        while progress(&direct).await == Some(0) {
            assert!(begun.elapsed() < FOLLOWED_WITHIN * 2, "nothing was encrypted again");
            tokio::time::sleep(PAUSE).await;
        }
        kill(second);
        let reencrypted = progress(&direct).await.expect("the rotation is unfinished");
        let remaining = store.count_outdated_rows(SecretKeyId::of(&NEW)).await.unwrap();
        unlock_credential(&direct).await;
        assert!(reencrypted > 0 && remaining > 0, "{reencrypted} values, {remaining} rows left");
        let printed = rotate(&simulated.database, &settings.both()).unwrap();
        assert!(printed.contains("The rotation is finished"), "{printed}");
        assert!(!printed.contains("unknown key"), "{printed}");
        assert_eq!(progress(&direct).await, None);
        deliver(&simulated, &site, &account, "during").await;
        load.is_over.store(true, Ordering::Relaxed);
        while let Some(done) = clients.join_next().await {
            done.unwrap();
        }
        let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
        println!(
            "{engine:?}: {} taps, {} installs, {} changes of a credential; interrupted after {reencrypted} values, {remaining} rows left",
            count(&load.taps), count(&load.installs), count(&load.changes),
        );
        assert!(doctor.contains("rotation of the secret key"), "{doctor}");
        assert!(count(&load.changes) > 0);

        // Nodes with the new key only.
        let second_click = site.tap(&site.link, "fbclid=f9").await;
        simulated.server.kill_now();
        drop(nodes);
        let old_only = ServerProcess::try_start_with(&simulated.database, &[]).await.unwrap_err();
        assert!(old_only.log.contains("secret_key does not match"), "{old_only}");
        simulated.server =
            ServerWithSimulator::serve_with(&simulated.database, &simulated.simulator, &settings.new_only()).await;
        site = site.through(simulated.server.base_url());
        let issued = clicks.into_iter().chain([first_click, second_click]);
        for (number, click) in issued.enumerate() {
            site.click = click;
            deliver(&simulated, &site, &account, &format!("after-{number}")).await;
        }
        assert_eq!(signing_secret(&site).await, secret);
        assert_eq!(columns_encrypted_with(&direct, NEW).await, rotated_columns());
        expect_kept(&before, &open_all(&*store, NEW, OLD).await);
        assert_eq!(store.count_outdated_rows(SecretKeyId::of(&NEW)).await.unwrap(), 0);
        let check = store.stored_keys().await.unwrap().check.unwrap();
        assert!(check.fits(&NEW) && !check.fits(&OLD));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_in_the_data_folder_is_replaced() {
    let database = TestDatabase::new(Engine::Sqlite).await;
    let own_key = [("TRIBUTARY_SECRET_KEY", "")];
    let run = |arguments: &[&str]| {
        tokio::task::block_in_place(|| ServerProcess::run_with(&database, &own_key, arguments))
    };
    let key = |name: &str| std::fs::read_to_string(database.folder().join(name)).ok();
    let server = ServerProcess::start_with(&database, &own_key).await;
    let first = key("secret_key").unwrap();
    let refused = run(&["secret-key", "rotate"]).unwrap_err();
    assert!(refused.contains("secret-key generate"), "{refused}");
    run(&["secret-key", "generate"]).unwrap();
    let refused = run(&["secret-key", "generate"]).unwrap_err();
    assert!(refused.contains("exists already"), "{refused}");
    let next = key("secret_key.next").unwrap();
    assert_ne!(first, next);
    let refused = run(&["secret-key", "rotate"]).unwrap_err();
    assert!(refused.contains("restart them"), "{refused}");
    assert!(server.terminate().success());
    let server = ServerProcess::start_with(&database, &own_key).await;
    let status = run(&["secret-key", "status"]).unwrap();
    assert!(status.contains("no rotation is unfinished"), "{status}");
    let printed = run(&["secret-key", "rotate"]).unwrap();
    assert!(printed.contains("The rotation is finished"), "{printed}");
    assert_eq!(
        (key("secret_key"), key("secret_key.next")),
        (Some(next), None)
    );
    assert!(server.terminate().success());
    let backup = database.folder().join("backup");
    run(&["backup", backup.to_str().unwrap()]).unwrap();
    let server = ServerProcess::start_with(&database, &own_key).await;
    assert!(server.terminate().success());
    let restored = TestDatabase::new(Engine::Sqlite).await;
    let arguments = ["restore", backup.to_str().unwrap()];
    let printed = ServerProcess::run_with(&restored, &own_key, &arguments);
    printed.unwrap();
    let server = ServerProcess::start_with(&restored, &own_key).await;
    assert!(server.terminate().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_does_not_know_the_new_key_stops_and_a_backup_is_refused() {
    let settings = KeySettings::new();
    let database = TestDatabase::new(Engine::Sqlite).await;
    let mut server = ServerProcess::start(&database).await;
    // As if the node had been cut off when the rotation began.
    let direct = database.direct_connection().await;
    direct.run("delete from key_holders").await;
    let rotation = spawn_rotation(&database, &settings.both());
    let begun = Instant::now();
    while progress(&direct).await.is_none() {
        assert!(
            begun.elapsed() < FOLLOWED_WITHIN,
            "the rotation did not begin"
        );
        tokio::time::sleep(PAUSE).await;
    }
    kill(rotation);
    while server.is_running() {
        assert!(begun.elapsed() < FOLLOWED_WITHIN, "the node did not stop");
        tokio::time::sleep(PAUSE).await;
    }
    let log = server.log();
    assert!(
        log.contains("secret_key does not match the database"),
        "{log}"
    );
    let only_new = ServerProcess::try_start_with(&database, &settings.new_only()).await;
    let log = only_new.unwrap_err().log;
    assert!(
        log.contains("rotation of the secret key is unfinished"),
        "{log}"
    );
    let doctor = doctor(&database, &settings.both());
    assert!(doctor.contains("rotation of the secret key"), "{doctor}");
    let file = database.folder().join("backup");
    let arguments = ["backup", file.to_str().unwrap()];
    let own_key = [("TRIBUTARY_SECRET_KEY", "")];
    let refused = ServerProcess::run_with(&database, &own_key, &arguments).unwrap_err();
    assert!(refused.contains("--without-key"), "{refused}");
    rotate(&database, &settings.both()).unwrap();
    let server = ServerProcess::start_with(&database, &settings.new_only()).await;
    assert!(server.terminate().success());
}
