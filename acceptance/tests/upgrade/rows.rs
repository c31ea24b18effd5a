//! Rows for every table of a schema, whatever its version.
//!
//! Values follow from the table, the column, its type and the number of the row, so a new table
//! gets rows without a change here. JSON and keywords are listed by name, because migrations and the
//! program read them; they have the form that the oldest version wrote. Rows with the same number
//! refer to each other.

use super::catalog::{Catalog, Column};
use super::clock;
use tributary_domain::access::Environment;
use tributary_domain::access::key::{KeyKind, KeyText};
use tributary_domain::vocabulary::digest::hex;
use tributary_domain::vocabulary::id::AppId;
use tributary_testkit::{DirectConnection, Engine};

/// Rows of a table: one without optional values, two with them. Roll-ups have as many per grain.
pub(super) const ROWS: u8 = 3;
/// Number of the row without optional values.
const SPARSE: u8 = 1;
/// Lengths of the stretches that roll-ups count, in minutes.
const GRAINS: [i64; 3] = [15, 60, 1_440];
/// The value of every figure in the roll-ups of the first app.
pub(super) const FIGURE: i64 = 10;
/// Purchases in the pending increment of each app.
pub(super) const PENDING_PURCHASES: i64 = 1;

/// Tables that others refer to, in an order in which they can be filled.
const PARENTS: [&str; 5] = ["organizations", "users", "new_users", "apps", "links"];

#[derive(Debug, Clone)]
enum Value {
    Null,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Returns the key of the first organization.
pub(super) fn key() -> KeyText {
    KeyText::generate(KeyKind::Private, Environment::Live, [7; 24])
}

/// Returns the first app.
pub(super) fn app() -> AppId {
    AppId::from_bytes(id("app_id", 0))
}

/// Returns an id: a time, and after it what tells ids apart.
fn id(column: &str, row: u8) -> [u8; 16] {
    let millis = clock::day_start() + i64::from(row) * 1_000;
    let letters: u32 = column.bytes().map(u32::from).sum();
    let mut id = [0; 16];
    id[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    id[6] = 0x70;
    id[7] = (letters % 256).to_le_bytes()[0];
    id[8] = 0x80;
    id[15] = row + 1;
    id
}

/// Adds rows to every table.
pub(super) async fn fill(database: &DirectConnection, engine: Engine, catalog: &Catalog) {
    let parents = PARENTS.iter().filter(|table| catalog.has(table));
    let others = catalog.tables().filter(|table| !PARENTS.contains(table));
    let mut statements = String::new();
    for table in parents.copied().chain(others) {
        let columns = catalog.columns(table);
        for row in 0..ROWS {
            let is_graded = columns.iter().any(|column| column.name == "grain");
            for grain in if is_graded { &GRAINS[..] } else { &GRAINS[..1] } {
                statements += &insert(engine, table, columns, row, *grain);
            }
        }
    }
    let statements = match engine {
        Engine::Sqlite => format!("pragma foreign_keys = on; begin; {statements} commit"),
        Engine::Postgres => statements,
    };
    database.run(&statements).await;
}

fn insert(engine: Engine, table: &str, columns: &[Column], row: u8, grain: i64) -> String {
    let written: Vec<&Column> = columns
        .iter()
        .filter(|column| !column.is_generated)
        .collect();
    let names: Vec<&str> = written.iter().map(|column| column.name.as_str()).collect();
    let values: Vec<String> = written
        .iter()
        .map(|column| literal(engine, column, value(table, column, row, grain)))
        .collect();
    format!(
        "insert into {table} ({}) values ({});\n",
        names.join(", "),
        values.join(", ")
    )
}

fn literal(engine: Engine, column: &Column, value: Value) -> String {
    match (value, engine) {
        (Value::Null, _) => "null".to_owned(),
        (Value::Number(number), Engine::Postgres) if column.kind == "boolean" => {
            (number != 0).to_string()
        }
        (Value::Number(number), _) => number.to_string(),
        (Value::Text(text), _) => format!("'{}'", text.replace('\'', "''")),
        (Value::Bytes(bytes), Engine::Sqlite) => format!("x'{}'", hex(&bytes)),
        (Value::Bytes(bytes), Engine::Postgres) if column.kind == "uuid" => {
            format!("'{}'", hex(&bytes))
        }
        (Value::Bytes(bytes), Engine::Postgres) => format!("'\\x{}'", hex(&bytes)),
    }
}

fn value(table: &str, column: &Column, row: u8, grain: i64) -> Value {
    let name = column.name.as_str();
    let listed = match column.kind.as_str() {
        "text" => text(table, name, row),
        "blob" | "uuid" | "bytea" => Some(bytes(table, name, row)),
        _ => number(table, name, row, grain),
    };
    if column.is_nullable && row == SPARSE {
        return Value::Null;
    }
    listed.unwrap_or_else(|| match column.kind.as_str() {
        "text" => format!("{name} {row} ö'").into(),
        _ => (FIGURE + i64::from(row)).into(),
    })
}

fn bytes(table: &str, name: &str, row: u8) -> Value {
    match (table, name) {
        ("audit_log", "actor_id") => Value::Null,
        ("api_keys", "digest") if row == 0 => Value::Bytes(key().digest().as_bytes().to_vec()),
        (_, "duplicate_of" | "dedup_root" | "created_by") => Value::Bytes(id(name, row).to_vec()),
        _ if name.ends_with("_id") => Value::Bytes(id(name, row).to_vec()),
        _ => Value::Bytes(vec![row + 1; 32]),
    }
}

fn number(table: &str, name: &str, row: u8, grain: i64) -> Option<Value> {
    let start = clock::day_start();
    let row = i64::from(row);
    let number = match (table, name) {
        ("api_keys", "revoked_at") | ("links" | "share_links", "archived_at" | "revoked_at") => {
            return Some(Value::Null);
        }
        ("apps", "archived")
        | ("events", "first_payment" | "own")
        | (_, "slot" | "held_installs" | "held_revenue_micros") => 0,
        ("receipts" | "refunded_payments", "version") => row,
        (_, "grain") => grain,
        (_, "increment_id") => row + 1,
        (_, "bucket" | "complete_from") => start,
        (_, "hour") => start / 3_600_000,
        (_, "day" | "rate_day" | "pulled_until") => start / 86_400_000 + row,
        // Workers have nothing to do before the test ends.
        (_, "due_at" | "expires_at" | "leased_until" | "not_before" | "free_from") => {
            clock::future() + row
        }
        _ if name.ends_with("_at") => start + row,
        _ if name.starts_with("is_") || name.starts_with("has_") => row % 2,
        (_, "active" | "enabled" | "kept" | "probing" | "conflicting" | "did_win") => row % 2,
        _ => return None,
    };
    Some(number.into())
}

fn text(table: &str, name: &str, row: u8) -> Option<Value> {
    let of = |values: [&'static str; 3]| Some(Value::from(values[usize::from(row)]));
    let value = match (table, name) {
        ("apps", "settings") => app_settings(row).into(),
        ("links", "settings") => link_settings(row).into(),
        ("skan_configurations" | "skan_versions", "document") => SKAN_DOCUMENT.into(),
        ("notifications", "facts") => notification_facts(row).into(),
        ("devices", "decision") => DECISION.into(),
        ("rollup_increments", "body") => increment().into(),
        ("integrations", "event_mapping") => EVENT_MAPPING.into(),
        ("links", "tags") => "[\"spring\"]".into(),
        ("audit_log", "actor_kind") => "operator".into(),
        ("api_keys", "created_by_kind") => "user".into(),
        ("audit_log", "action") => "app.updated".into(),
        ("audit_log" | "clicks", "address") => "192.0.2.1".into(),
        ("events", "skipped" | "uncounted" | "hold" | "consent")
        | ("clicks", "bot" | "environment" | "network_by")
        | ("devices", "hold" | "hold_details")
        | ("api_keys", "apps" | "addresses")
        | ("deliveries", "reason") => Value::Null,
        ("events", "params" | "campaign") => "{}".into(),
        ("events" | "rollup_names", "name") => "purchase".into(),
        ("costs", "source") => "manual".into(),
        ("events" | "event_keys" | "rollup_names", "source") => {
            return of(["sdk", "web", "billing"]);
        }
        ("app_secrets", "name") => {
            return of([
                "social_referrer_key",
                "billing.revenuecat",
                "billing.superwall",
            ]);
        }
        ("links", "kind") => "app_install".into(),
        ("known_values", "kind") => return of(["campaign", "ad", "name"]),
        ("users", "role") => return of(["owner", "analyst", "viewer"]),
        ("saved_views", "page") => "overview".into(),
        ("factors", "kind") => "totp".into(),
        ("deliveries", "status") => return of(["delivered", "failed", "expired"]),
        ("postbacks" | "unclaimed_postbacks", "signature") => "valid".into(),
        (_, "slug") => format!("slug-{row}").into(),
        (_, "environment") => "live".into(),
        (_, "network") => return of(["network_a", "network_b", "network_c"]),
        (_, "platform") => return of(["ios", "android", "ios"]),
        (_, "provider") => return of(["revenuecat", "superwall", "appstore"]),
        (_, "permission") => return of(["full", "read_only", "analytics"]),
        (_, "role") => "viewer".into(),
        (_, "email") => format!("user{row}@example.com").into(),
        (_, "scope") => "all".into(),
        (_, "sharing") => "off".into(),
        (_, "protocol") => "skadnetwork".into(),
        (_, "trust") => "trusted".into(),
        (_, "counting") => "always".into(),
        (_, "coarse_value") => "low".into(),
        (_, "match_type") => "click_id".into(),
        (_, "currency") => "USD".into(),
        (_, "country") => "DE".into(),
        (_, "attempts" | "deliveries" | "changes") => "[]".into(),
        (_, "app_store_id") => format!("10000000{row}").into(),
        (_, "captured" | "traits" | "consent" | "matching" | "settings" | "credentials") => {
            "{}".into()
        }
        _ => return None,
    };
    Some(value)
}

/// Settings of an app as the first version stored them.
fn app_settings(row: u8) -> String {
    format!(
        r#"{{"timezone": "UTC", "bundle_id": "com.example.app{row}", "app_store_id": "10000000{row}",
            "team_id": null, "package_name": null, "cert_fingerprints": [],
            "web_events_enabled": true, "link_domain": null, "sdk_enabled": true,
            "sdk_revenue": "auto", "sdk_live_key": "pk_live_{row}", "sdk_test_key": "pk_test_{row}",
            "click_window_hours": 168, "probabilistic_ios": false, "probabilistic_android": false,
            "probabilistic_window_hours": 24, "fraud": "hold", "qualified_trial_enabled": false,
            "qualified_trial_delay_hours": 24, "skan_test_signals": false,
            "alert_webhook_url": null}}"#
    )
}

/// Settings of a link with a campaign and a deep link.
fn link_settings(row: u8) -> String {
    format!(
        r#"{{"ios_url": null, "android_url": null, "fallback_url": null, "destination_url": null,
            "pass_params": [], "deep_link": "Runner{row}://offer", "custom_data": {{}},
            "campaign_id": "linked {row}", "campaign_name": null, "adset_id": null,
            "adset_name": null, "ad_id": null, "ad_name": null}}"#
    )
}

/// Facts of a renewal that names a device, a person, an advertising id and a store transaction.
fn notification_facts(row: u8) -> String {
    format!(
        r#"{{"kind": "RENEWAL", "meaning": {{"payment": "renewal"}}, "transaction": "transaction {row}",
            "device": "device_id {row}", "people": ["user {row}"], "advertising": ["advertising {row}"],
            "join": ["device_id {row}", "device"], "standing": {{"name": "renewal"}}}}"#
    )
}

/// An increment that was counted but not merged into the roll-ups, as migration 12 introduced it.
fn increment() -> String {
    let at = format!(r#"["live", {}]"#, clock::day_start());
    let figures = format!("[0, 0, 0, 0, 0, 0, 0, {PENDING_PURCHASES}, 0, 0, 0, 0, 0, 0]");
    format!(
        r#"{{"credits": [[{at}, "network_a", null, "", "", "", {figures}]],
            "names": [[{at}, "sdk", "purchase", {figures}]],
            "places": [[{at}, "DE", "ios", {figures}]], "cohorts": []}}"#
    )
}

const EVENT_MAPPING: &str =
    r#"[{"event": "mapped", "network_event": "Purchase", "enabled": true}]"#;

/// A conversion-value configuration that mentions two events.
const SKAN_DOCUMENT: &str = r#"{"enabled": true, "currency": "USD", "windows": [
    {"index": 0, "enabled": true, "lock_on": {"event": "locked"}, "values": [
        {"name": "a", "fine_value": 1, "coarse_value": "low", "lock": false, "conditions": [
            {"event": "counted", "min_count": 1, "max_count": null, "min_revenue_micros": null,
             "max_revenue_micros": null}]}]}]}"#;

/// A flagged attribution, which a migration holds for a review.
const DECISION: &str = r#"{"state": "attributed", "match_type": "click_id", "network": "network_a",
    "reason": "click id", "flags": ["short_ctit"], "click_window_hours": 168, "probabilistic": false,
    "window_hours": 24}"#;
