//! Migrating older schemas.

use super::database::Schema;
use crate::migrate::MIGRATIONS;
use std::sync::Arc;
use tokio_postgres::Client;
use tributary_domain::vocabulary::digest::{Digest, hex};
use tributary_store::contract::billing_duplicates::{
    UNDO_MATCHING_SQL, assert_pairs_corrected, store_pairs,
};
use tributary_store::contract::fixtures::SharedStore;

/// Creates a schema with the first migrations only.
async fn of_version(steps: usize) -> (Schema, Client) {
    let schema = Schema::create_without_tables().await;
    let client = schema.client().await;
    let known = "create table schema_migrations (
                     number bigint primary key,
                     name text collate \"C\" not null,
                     checksum text collate \"C\" not null
                 )";
    client.batch_execute(known).await.expect("a table");
    for step in &MIGRATIONS[..steps] {
        let applied = format!(
            "begin; {}; insert into schema_migrations values ({}, '{}', '{}'); commit",
            step.sql,
            step.number,
            step.name,
            step.checksum()
        );
        client.batch_execute(&applied).await.expect("a step");
    }
    (schema, client)
}

async fn rows(client: &Client, sql: &str) -> Vec<String> {
    let found = client.query(sql, &[]).await.expect("rows");
    found.iter().map(|row| row.get(0)).collect()
}

const APP: &str = "'01000000-0000-0000-0000-000000000000'";

/// The old schema has figures for two quarter-hours in the same hour, and for one on the next day.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrates_quarter_hour_figures_to_hours_and_days() {
    let (schema, client) = of_version(6).await;
    for (index, bucket) in (1..).zip([0, 900_000, 86_400_000]) {
        let figures = format!("{index}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10 * {index}, 0");
        let at = format!("{APP}, 'live', {bucket}");
        let figure_columns = "clicks, installs, organic_installs, sign_ups, trials, qualified_trials, subscriptions, \
             purchases, renewals, refunds, events, paying_devices, revenue_micros, refunded_micros";
        let old = format!(
            "insert into rollup_credits (app_id, environment, bucket, network, link_id, campaign_digest,
                                         campaign_id, adset_id, ad_id, {figure_columns})
             values ({at}, 'social', {APP}, '\\x00', 'c', 's', 'a', {figures});
             insert into rollup_names (app_id, environment, bucket, source, name, {figure_columns})
             values ({at}, 'sdk', 'purchase', {figures});
             insert into rollup_places (app_id, environment, bucket, country, platform, {figure_columns})
             values ({at}, 'DE', 'ios', {figures})"
        );
        client.batch_execute(&old).await.expect("old rows");
    }
    drop(schema.open().await);
    for table in [
        "rollup_networks",
        "rollup_campaigns",
        "rollup_credits",
        "rollup_names",
        "rollup_places",
    ] {
        let sql = format!(
            "select concat_ws(' ', grain, bucket, clicks, revenue_micros) from {table} order by grain, bucket"
        );
        let expected = [
            "15 0 1 10",
            "15 900000 2 20",
            "15 86400000 3 30",
            "60 0 3 30",
            "60 86400000 3 30",
            "1440 0 3 30",
            "1440 86400000 3 30",
        ];
        assert_eq!(rows(&client, &sql).await, expected, "{table}");
    }
    // The migration computes the same digest as the program does for new rows.
    let digest = Digest::of(b"c\0\0");
    let sql = "select distinct encode(campaign_digest, 'hex') from rollup_campaigns";
    assert_eq!(rows(&client, sql).await, [hex(digest.as_bytes())]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrates_ad_figures_to_campaigns() {
    let (schema, client) = of_version(12).await;
    for (index, (campaign, ad, slot)) in [("c", "a", 0), ("c", "a", 3), ("c", "b", 0), ("", "", 0)]
        .into_iter()
        .enumerate()
    {
        let figures = format!("{index}+1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10 * ({index}+1), 0");
        let old = format!(
            "insert into rollup_credits (app_id, environment, grain, bucket, network, link_id, campaign_digest,
                 campaign_id, adset_id, ad_id, slot, clicks, installs, organic_installs, sign_ups, trials,
                 qualified_trials, subscriptions, purchases, renewals, refunds, events, paying_devices,
                 revenue_micros, refunded_micros)
             values ({APP}, 'live', 15, 0, 'network_a', {APP}, sha256('{campaign}/{ad}'), '{campaign}', '', '{ad}',
                     {slot}, {figures})"
        );
        client.batch_execute(&old).await.expect("old rows");
    }
    drop(schema.open().await);
    let sql =
        "select concat_ws(' ', campaign_id, slot, clicks, revenue_micros) from rollup_campaigns
               order by campaign_id";
    assert_eq!(rows(&client, sql).await, [" 0 4 40", "c 0 6 60"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrates_settings_to_known_values() {
    let (schema, client) = of_version(21).await;
    let old = r#"
        insert into organizations values (APP, 'O', 1);
        insert into apps values (APP, APP, 'A', false, '{"revenue_events": ["level"]}', 1, 1, 1);
        insert into apps values (gen_random_uuid(), APP, 'B', false, '{}', 1, 1, 1);
        insert into links values
            (APP, gen_random_uuid(), 's', 'S', 'app', null, true, '{"campaign_id": "linked"}', 1, 1, 1, 1),
            (APP, gen_random_uuid(), 't', 'T', 'app', null, true, '{"campaign_id": null}', 1, 1, null, 1);
        insert into costs values
            (APP, gen_random_uuid(), 1, 'network_a', 'paid', 1, 'USD', 1, 1, 1),
            (APP, gen_random_uuid(), 2, 'network_a', 'paid', 1, 'USD', 1, 1, 1),
            (APP, gen_random_uuid(), 2, 'network_a', '', 1, 'USD', 1, 1, 1);
        insert into integrations (app_id, network, enabled, scope, settings, credentials, event_mapping, updated_at, revision)
        values (APP, 'network_a', true, 'all', '{}', '{}', '[{"event": "mapped"}]', 1, 1),
               (APP, 'network_b', true, 'all', '{}', '{}', null, 1, 1);
        insert into skan_configurations values (APP, 1, 1,
            '{"windows": [{"lock_on": {"event": "locked"}, "values": [{"conditions": [{"event": "counted"}]}]}, {"lock_on": null, "values": []}]}', 1);
    "#;
    let old = old.replace("APP", APP);
    client.batch_execute(&old).await.expect("old rows");
    drop(schema.open().await);
    let sql = "select concat_ws(' ', kind, value) from known_values order by kind, value";
    let expected = [
        "campaign linked",
        "campaign paid",
        "name counted",
        "name level",
        "name locked",
        "name mapped",
    ];
    assert_eq!(rows(&client, sql).await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrates_page_urls_and_refund_totals() {
    let (schema, client) = of_version(9).await;
    let id = |last: &str| format!("'00000000-0000-0000-0000-00000000000{last}'");
    let (a, b, c) = (id("a"), id("b"), id("c"));
    let old = format!(
        "insert into events (app_id, environment, event_id, given_id, source, name, occurred_at,
                             received_at, first_payment, own)
         values ({APP}, 'live', {a}, 'p1', 'web', 'purchase', 1, 1, true, false),
                ({APP}, 'live', {b}, 'r1', 'web', 'refund', 2, 2, false, false),
                ({APP}, 'live', {c}, 'p2', 'web', 'purchase', 3, 3, false, false),
                ({APP}, 'test', {a}, 's1', 'sdk', 'level', 1, 1, false, false);
         insert into web_events (app_id, event_id, source_url, parent_given_id, email_sha256)
         values ({APP}, {a}, 'https://a.example/1', null, 'h'),
                ({APP}, {b}, 'https://a.example/2', 'p1', null),
                ({APP}, {c}, 'https://a.example/3', null, null);
         insert into receipts (app_id, given_id, event_id, kind, refunded_micros, version)
         values ({APP}, 'p1', {a}, 'purchase', 4000000, 1), ({APP}, 'p2', {c}, 'purchase', 0, 0)"
    );
    client.batch_execute(&old).await.expect("old rows");
    drop(schema.open().await);
    let pages = rows(
        &client,
        "select concat_ws(' ', given_id, source_url, parent_given_id, email_sha256) from events order by given_id",
    );
    assert_eq!(
        pages.await,
        [
            "p1 https://a.example/1 h",
            "p2 https://a.example/3",
            "r1 https://a.example/2 p1",
            "s1"
        ]
    );
    let refunded =
        "select concat_ws(' ', given_id, refunded_micros, version) from refunded_payments";
    assert_eq!(rows(&client, refunded).await, ["p1 4000000 1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicates_from_before_the_upgrade_are_corrected() {
    let schema = Schema::create_without_tables().await;
    let store: SharedStore = Arc::new(schema.open().await);
    let one = store_pairs(&store).await;
    let client = schema.client().await;
    let step = MIGRATIONS.iter().find(|step| step.number == 18);
    let step = step.expect("a step");
    for sql in [UNDO_MATCHING_SQL, step.sql] {
        client.batch_execute(sql).await.expect("old rows");
    }
    assert_pairs_corrected(&store, &one).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn derives_deep_link_schemes_and_the_environment_of_audit_entries() {
    let step = MIGRATIONS
        .iter()
        .position(|migration| migration.name == "audit_and_schemes")
        .expect("the migration");
    let (schema, client) = of_version(step).await;
    let id = |last: &str| format!("'00000000-0000-0000-0000-0000000000{last}'");
    let (organization, one, other) = (id("0a"), id("01"), id("02"));
    let link = |last: &str, settings: &str| {
        format!(
            "insert into links values ({one}, {}, '{last}', 'x', 'app_install', null, true, '{settings}',
                                       1, 1, null, 1);",
            id(last)
        )
    };
    let app = |app: &str| {
        format!(
            "insert into apps values ({app}, {organization}, 'A', false, '{{\"timezone\": \"UTC\"}}', 1, 1, 1);"
        )
    };
    let key = |last: &str, environment: &str| {
        format!(
            "insert into api_keys values ({}, {organization}, 'k', 'full', '{environment}', 'h', '\\x{last}', 1);",
            id(last)
        )
    };
    let entry = |last: &str, kind: &str, actor: &str, target: &str| {
        format!(
            "insert into audit_log values ({organization}, {}, 1, '{kind}', {actor}, 'app.updated', {one},
                                           '{target}', '[]');",
            id(last)
        )
    };
    let old = [
        format!("insert into organizations values ({organization}, 'O', 1);"),
        app(&one),
        app(&other),
        link("11", r#"{"deep_link": "Runner://offer"}"#),
        link("12", r#"{"deep_link": "runner://x:1"}"#),
        link("13", r#"{"deep_link": "beta:x"}"#),
        link("14", r#"{"deep_link": "https://a.example/"}"#),
        link("15", r#"{"deep_link": null}"#),
        key("1a", "test"),
        key("1b", "live"),
        entry("21", "key", &id("1a"), "t"),
        entry("22", "key", &id("1b"), "l"),
        entry("23", "operator", "null", "o"),
    ];
    client.batch_execute(&old.concat()).await.expect("old rows");
    drop(schema.open().await);
    let schemes = "select coalesce(settings::jsonb ->> 'deep_link_schemes', 'none') from apps order by app_id";
    assert_eq!(
        rows(&client, schemes).await,
        [r#"["beta", "runner"]"#, "none"]
    );
    let entries = "select target || ' ' || environment from audit_log order by audit_id";
    assert_eq!(rows(&client, entries).await, ["t test", "l live", "o live"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keeps_accounts_sessions_and_app_store_ids() {
    let (schema, client) = of_version(25).await;
    let other = "'02000000-0000-0000-0000-000000000000'";
    let old = r"
        insert into organizations values (APP, 'O', 1), (OTHER, 'P', 1);
        insert into users (user_id, organization_id, email, role, password_hash, created_at)
        values (APP, APP, 'you@example.com', 'owner', 'h', 5);
        insert into sessions (digest, user_id, created_at, last_seen_at, expires_at)
        values ('\x09', APP, 1, 2, 3);
        insert into apps values (APP, APP, 'A', false, '{}', 11, 1, 1);
        insert into app_store_ids values ('123', APP);
    ";
    let old = old.replace("APP", APP).replace("OTHER", other);
    client.batch_execute(&old).await.expect("old rows");
    drop(schema.open().await);
    let sessions =
        "select concat_ws(' ', email, role, password_hash, encode(digest, 'hex'), expires_at)
                    from users join sessions using (user_id)";
    assert_eq!(
        rows(&client, sessions).await,
        ["you@example.com owner h 09 3"]
    );
    let claims = "select concat_ws(' ', app_store_id, claimed_at, proof, has_postback)
                  from app_store_claims where app_id = organization_id";
    assert_eq!(rows(&client, claims).await, ["123 11 existing f"]);
    let another = |organization: &str| {
        format!(
            "insert into users (user_id, organization_id, email, role, password_hash, created_at)
             values (gen_random_uuid(), {organization}, 'you@example.com', 'owner', 'h', 6)"
        )
    };
    let elsewhere = client.batch_execute(&another(other)).await;
    elsewhere.expect("one account per organization");
    assert!(client.batch_execute(&another(APP)).await.is_err());
}
