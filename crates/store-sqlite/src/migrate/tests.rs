//! Older schemas and query plans.

use super::*;
use rstest::rstest;

fn migrated() -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection).unwrap();
    connection
}

#[test]
fn migrating_again_changes_nothing() {
    let mut connection = migrated();
    migrate(&mut connection).unwrap();
}

/// Queries that run for each recorded event, or for a page of the event log.
#[rstest]
#[case(
    "events where app_id = ?1 and environment = ?2 and device_id = ?3",
    "events_by_device"
)]
#[case(
    "events where app_id = ?1 and environment = ?2 and user_id = ?3",
    "events_by_user"
)]
#[case(
    "events where app_id = ?1 and environment = ?2 and name = ?3",
    "events_by_name"
)]
#[case(
    "identities where app_id = ?1 and environment = ?2 and user_id = ?3",
    "identities_by_user"
)]
#[case(
    "devices where app_id = ?1 and environment = ?2 and advertising_id = ?3",
    "devices_by_advertising_id"
)]
#[case(
    "notifications where app_id = ?1 and environment = ?2 and provider = ?3 and chain = ?4",
    "notifications_by_chain"
)]
#[case(
    "outbox where app_id = ?1 and network = ?2 and due_at <= ?3",
    "outbox_due"
)]
#[case(
    "deliveries where app_id = ?1 and status = ?2 and status <> 'delivered' and delivery_id >= ?3",
    "deliveries_by_status"
)]
#[case("postbacks where app_id = ?1 and key_digest = ?2", "postbacks_by_key")]
#[case(
    "user_links where app_id = ?1 and environment = ?2 and device_id = ?3",
    "user_links_by_device"
)]
#[case(
    "erase_tokens where app_id = ?1 and environment = ?2 and proof = ?3",
    "erase_tokens_proof"
)]
fn queries_use_their_index(#[case] query: &str, #[case] index: &str) {
    let explain = format!("explain query plan select * from {query}");
    let values = rusqlite::params_from_iter(vec![0; query.matches('?').count()]);
    let plan = |row: &rusqlite::Row<'_>| row.get::<_, String>("detail");
    let found = migrated().query_row(&explain, values, plan);
    let found = found.unwrap();
    assert!(found.contains(&format!("INDEX {index} ")), "{found}");
}

/// Where two indexes begin with the same column, `SQLite` guesses which one selects fewer rows unless it
/// has statistics of both.
#[test]
fn indexes_to_choose_between_have_statistics() {
    let missing = "
        with indexes as (
            select tables.name as tbl, list.name as idx, list.origin,
                   (select name from pragma_index_info(list.name) where seqno = 0) as first
            from sqlite_schema as tables, pragma_index_list(tables.name) as list
            where tables.type = 'table')
        select tbl || ': ' || idx from indexes as one
        where exists (select 1 from indexes as other
                      where other.tbl = one.tbl and other.idx <> one.idx and other.first = one.first)
          and not exists (select 1 from sqlite_stat1 as stat
                          where stat.tbl = one.tbl and stat.idx = iif(origin = 'pk', one.tbl, one.idx))";
    assert_eq!(rows(&migrated(), missing), Vec::<String>::new());
}

#[test]
fn rejects_a_newer_database_without_changing_it() {
    let mut connection = migrated();
    connection
        .execute(
            "insert into schema_migrations (number, name, checksum) values (999, 'future', 'x')",
            (),
        )
        .unwrap();
    let refused = migrate(&mut connection);
    assert!(matches!(
        refused,
        Err(SqliteOpenError::Migration(
            MigrationRefusal::DatabaseIsNewer { found: 999, .. }
        ))
    ));
    let compatible = "update schema_migrations set compatible_from = ?1 where number = 999";
    let newest = MIGRATIONS.last().unwrap().number;
    connection.execute(compatible, (newest,)).unwrap();
    migrate(&mut connection).unwrap();
}

#[test]
fn new_migrations_declare_which_programs_work_with_them() {
    // No older program worked beside one with migration 29.
    let undeclared = tributary_store::migration::undeclared_after(MIGRATIONS, 29);
    assert_eq!(undeclared, None, "add `-- Compatible from: …` to its file");
}

#[test]
fn adds_the_compatibility_to_the_list_of_an_older_version() {
    let mut connection = of_version(28);
    let older = "alter table schema_migrations drop column compatible_from";
    connection.execute_batch(older).unwrap();
    migrate(&mut connection).unwrap();
    let from = rows(
        &connection,
        "select coalesce(cast(compatible_from as text), 'none') from schema_migrations
         where number in (28, 29) order by number",
    );
    assert_eq!(from, ["none", "29"]);
}

/// Creates a database with an older schema version.
fn of_version(steps: usize) -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate_to(&mut connection, &MIGRATIONS[..steps]).unwrap();
    connection
        .pragma_update(None, "foreign_keys", false)
        .unwrap();
    connection
}

fn rows(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(sql).unwrap();
    let found = statement.query_map((), |row| row.get(0)).unwrap();
    found.collect::<Result<_, _>>().unwrap()
}

#[test]
fn migrates_ad_figures_to_campaigns() {
    let mut connection = of_version(12);
    let ads = [("c", "a", 0), ("c", "a", 3), ("c", "b", 0), ("", "", 0)];
    for (index, (campaign, ad, slot)) in ads.into_iter().enumerate() {
        let figures = format!("{index}+1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10 * ({index}+1), 0");
        let old = format!(
            "insert into rollup_credits
             values (x'01', 'live', 15, 0, 'network_a', x'', '{campaign}', '', '{ad}', {slot}, {figures})"
        );
        connection.execute_batch(&old).unwrap();
    }
    migrate(&mut connection).unwrap();
    let sql =
        "select concat_ws(' ', campaign_id, slot, clicks, revenue_micros) from rollup_campaigns
               order by campaign_id";
    let mut statement = connection.prepare(sql).unwrap();
    let found: Vec<String> = statement
        .query_map((), |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(found, [" 0 4 40", "c 0 6 60"]);
}

#[test]
fn migrates_settings_to_known_values() {
    let mut connection = of_version(21);
    let old = r#"
        insert into apps values (x'01', x'02', 'A', 0, '{"revenue_events": ["level"]}', 1, 1, 1);
        insert into apps values (x'03', x'02', 'B', 0, '{}', 1, 1, 1);
        insert into links values (x'01', x'04', 's', 'S', 'app', null, 1, '{"campaign_id": "linked"}', 1, 1, 1, 1);
        insert into links values (x'01', x'05', 't', 'T', 'app', null, 1, '{"campaign_id": null}', 1, 1, null, 1);
        insert into costs values (x'01', x'06', 1, 'network_a', 'paid', 1, 'USD', 1, 1, 1);
        insert into costs values (x'01', x'07', 2, 'network_a', 'paid', 1, 'USD', 1, 1, 1);
        insert into costs values (x'01', x'08', 2, 'network_a', '', 1, 'USD', 1, 1, 1);
        insert into integrations (app_id, network, enabled, scope, settings, credentials, event_mapping, updated_at, revision)
        values (x'01', 'network_a', 1, 'all', '{}', '{}', '[{"event": "mapped"}]', 1, 1),
               (x'01', 'network_b', 1, 'all', '{}', '{}', null, 1, 1);
        insert into skan_configurations values (x'01', 1, 1,
            '{"windows": [{"lock_on": {"event": "locked"}, "values": [{"conditions": [{"event": "counted"}]}]}, {"lock_on": null, "values": []}]}', 1);
    "#;
    connection.execute_batch(old).unwrap();
    migrate(&mut connection).unwrap();
    let sql = "select concat_ws(' ', hex(app_id), kind, value) from known_values order by 1";
    let expected = [
        "01 campaign linked",
        "01 campaign paid",
        "01 name counted",
        "01 name level",
        "01 name locked",
        "01 name mapped",
    ];
    assert_eq!(rows(&connection, sql), expected);
}

#[test]
fn keeps_accounts_sessions_and_app_store_ids() {
    let mut connection = of_version(25);
    let old = "
        insert into organizations values (x'02', 'O', 1), (x'03', 'P', 1);
        insert into users (user_id, organization_id, email, role, password_hash, created_at)
        values (x'01', x'02', 'you@example.com', 'owner', 'h', 5);
        insert into sessions (digest, user_id, created_at, last_seen_at, expires_at)
        values (x'09', x'01', 1, 2, 3);
        insert into apps values (x'07', x'02', 'A', 0, '{}', 11, 1, 1);
        insert into app_store_ids values ('123', x'07');
    ";
    connection.execute_batch(old).unwrap();
    migrate(&mut connection).unwrap();
    let sessions = "select concat_ws(' ', email, role, password_hash, hex(digest), expires_at)
                    from users join sessions using (user_id)";
    assert_eq!(
        rows(&connection, sessions),
        ["you@example.com owner h 09 3"]
    );
    let claims =
        "select concat_ws(' ', app_store_id, hex(app_id), hex(organization_id), claimed_at,
                                   proof, has_postback) from app_store_claims";
    assert_eq!(rows(&connection, claims), ["123 07 02 11 existing 0"]);
    let another = |user: &str, organization: &str| {
        format!(
            "insert into users (user_id, organization_id, email, role, password_hash, created_at)
             values (x'{user}', x'{organization}', 'you@example.com', 'owner', 'h', 6)"
        )
    };
    connection.execute_batch(&another("04", "03")).unwrap();
    assert!(connection.execute_batch(&another("05", "02")).is_err());
}

/// The old schema has figures for two quarter-hours in the same hour, and for one on the next day.
#[test]
fn migrates_quarter_hour_figures_to_hours_and_days() {
    let mut connection = of_version(6);
    let quarters = [0, 900_000, 86_400_000];
    for (index, bucket) in quarters.into_iter().enumerate() {
        let figures = format!("{index}+1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10 * ({index}+1), 0");
        let at = format!("x'01', 'live', {bucket}");
        let old = format!(
            "insert into rollup_credits values ({at}, 'social', x'', 'c', 's', 'a', {figures});
             insert into rollup_names values ({at}, 'sdk', 'purchase', {figures});
             insert into rollup_places values ({at}, 'DE', 'ios', {figures});"
        );
        connection.execute_batch(&old).unwrap();
    }
    migrate(&mut connection).unwrap();
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
        assert_eq!(rows(&connection, &sql), expected, "{table}");
    }
}

#[test]
fn migrates_page_urls_and_refund_totals() {
    let mut connection = of_version(9);
    let event = "app_id, environment, event_id, given_id, source, name, occurred_at, received_at, first_payment, own";
    let old = format!(
        "insert into events ({event}) values
             (x'01', 'live', x'0a', 'p1', 'web', 'purchase', 1, 1, 1, 0),
             (x'01', 'live', x'0b', 'r1', 'web', 'refund', 2, 2, 0, 0),
             (x'01', 'live', x'0c', 'p2', 'web', 'purchase', 3, 3, 0, 0),
             (x'01', 'test', x'0a', 's1', 'sdk', 'level', 1, 1, 0, 0);
         insert into web_events values
             (x'01', x'0a', 'https://a.example/1', null, 'h'),
             (x'01', x'0b', 'https://a.example/2', 'p1', null),
             (x'01', x'0c', 'https://a.example/3', null, null);
         insert into receipts values
             (x'01', 'p1', x'0a', 'purchase', 4000000, 1), (x'01', 'p2', x'0c', 'purchase', 0, 0);"
    );
    connection.execute_batch(&old).unwrap();
    migrate(&mut connection).unwrap();
    let pages = rows(
        &connection,
        "select concat_ws(' ', given_id, source_url, parent_given_id, email_sha256) from events order by given_id",
    );
    assert_eq!(
        pages,
        [
            "p1 https://a.example/1 h",
            "p2 https://a.example/3",
            "r1 https://a.example/2 p1",
            "s1"
        ]
    );
    let refunded =
        "select concat_ws(' ', given_id, refunded_micros, version) from refunded_payments";
    assert_eq!(rows(&connection, refunded), ["p1 4000000 1"]);
}

#[test]
fn drops_indexes_that_no_statement_uses() {
    let indexes = "select name from sqlite_schema where type = 'index'
                   and name in ('cohort_devices_by_install', 'rollup_values_told_apart')";
    let mut connection = of_version(27);
    assert_eq!(rows(&connection, indexes).len(), 2);
    migrate(&mut connection).unwrap();
    assert!(rows(&connection, indexes).is_empty());
    let unknown = "select idx from sqlite_stat1 where idx not in (select name from sqlite_schema)
                   order by idx";
    assert_eq!(rows(&connection, unknown), Vec::<String>::new());
}

#[test]
fn recorded_rows_have_no_foreign_key_to_apps() {
    let connection = migrated();
    for table in [
        "events",
        "event_keys",
        "identities",
        "devices",
        "outbox",
        "deliveries",
        "postbacks",
    ] {
        let sql = format!("select \"table\" from pragma_foreign_key_list('{table}')");
        assert_eq!(rows(&connection, &sql), Vec::<String>::new(), "{table}");
    }
    assert_eq!(
        rows(&connection, "select * from pragma_integrity_check"),
        ["ok"]
    );
}

#[test]
fn derives_deep_link_schemes_and_the_environment_of_audit_entries() {
    let step = |migration: &Migration| migration.name == "audit_and_schemes";
    let mut connection = of_version(MIGRATIONS.iter().position(step).unwrap());
    let old = r#"
        insert into apps values (x'01', x'0a', 'A', 0, '{"timezone": "UTC"}', 1, 1, 1);
        insert into apps values (x'02', x'0a', 'B', 0, '{"timezone": "UTC"}', 1, 1, 1);
        insert into links values
            (x'01', x'01', 'a', 'a', 'app_install', null, 1, '{"deep_link": "Runner://offer"}', 1, 1, null, 1),
            (x'01', x'02', 'b', 'b', 'app_install', null, 1, '{"deep_link": "runner://x:1"}', 1, 1, null, 1),
            (x'01', x'03', 'c', 'c', 'app_install', null, 1, '{"deep_link": "beta:x"}', 1, 1, 5, 1),
            (x'01', x'04', 'd', 'd', 'app_install', null, 1, '{"deep_link": "https://a.example/"}', 1, 1, null, 1),
            (x'01', x'05', 'e', 'e', 'app_install', null, 1, '{"deep_link": null}', 1, 1, null, 1);
        insert into api_keys values
            (x'1a', x'0a', 'k', 'full', 'test', 'h', x'01', 1, null, null, null),
            (x'1b', x'0a', 'k', 'full', 'live', 'h', x'02', 1, null, null, null);
        insert into audit_log values
            (x'0a', x'01', 1, 'key', x'1a', 'device.erased', x'01', 't', '[]', null, null),
            (x'0a', x'02', 1, 'key', x'1b', 'app.updated', x'01', 'l', '[]', null, null),
            (x'0a', x'03', 1, 'operator', null, 'app.updated', x'01', 'o', '[]', null, null);"#;
    connection.execute_batch(old).unwrap();
    migrate(&mut connection).unwrap();
    let schemes =
        "select coalesce(json_extract(settings, '$.deep_link_schemes'), 'none') from apps";
    assert_eq!(rows(&connection, schemes), [r#"["beta","runner"]"#, "none"]);
    let entries = "select target || ' ' || environment from audit_log order by audit_id";
    assert_eq!(rows(&connection, entries), ["t test", "l live", "o live"]);
}
