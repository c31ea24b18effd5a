//! A database with rows in every table: moved, interrupted, changed meanwhile, and compared.

use super::{run_move, spawn_move};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tributary_testkit::{DirectConnection, Engine, ServerProcess, TestDatabase, TextRow};

/// Interval between checks for a session that waits or has ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Maximum time for such a session.
const WAIT_MAX: Duration = Duration::from_mins(1);
/// Session name of the moving process, so that the test finds it.
const SESSION: &str = "moving_every_table";
/// The same for the move back.
const BACK_SESSION: &str = "moving_back";

/// A missing link in a key on PostgreSQL. On SQLite it is empty bytes.
const NO_LINK: &str = "00000000-0000-0000-0000-000000000000";

/// A column: PostgreSQL's type, and whether it may be null.
type Column = (String, bool);

/// Columns of each table, by name.
type Tables = BTreeMap<String, BTreeMap<String, Column>>;

/// Reads PostgreSQL's columns. Those that SQLite lacks are computed.
async fn tables(postgres: &DirectConnection) -> Tables {
    let rows = postgres.rows(
        "select table_name, column_name, data_type, is_nullable from information_schema.columns
         where table_schema = current_schema() and table_name not in ('due_work', 'schema_migrations')
           and column_name <> 'campaign_digest'
           and not exists (select 1 from pg_class where relname = table_name and relispartition
                             and relnamespace = current_schema()::regnamespace)",
    );
    let mut tables = Tables::new();
    for row in rows.await {
        let [Some(table), Some(column), Some(kind), Some(nullable)] = &row[..] else {
            panic!("{row:?}");
        };
        let columns = tables.entry(table.clone()).or_default();
        columns.insert(column.clone(), (kind.clone(), nullable == "YES"));
    }
    assert!(tables.len() > 50, "{tables:?}");
    tables
}

/// Returns a value for a column. Rows with the same number refer to each other. Some figures belong
/// to no link, and some reserved ids to no event yet.
fn literal(table: &str, name: &str, (kind, nullable): &Column, number: u8) -> String {
    if *nullable && number % 3 == 1 {
        return "null".to_owned();
    }
    if table.starts_with("rollup_") && name == "link_id" && number.is_multiple_of(2) {
        return "x''".to_owned();
    }
    if table == "event_keys" && name == "event_id" && number.is_multiple_of(2) {
        return "zeroblob(16)".to_owned();
    }
    let letters: u32 = name.bytes().map(u32::from).sum();
    match kind.as_str() {
        "uuid" => format!(
            "x'{:02x}{}'",
            letters % 256,
            format!("{number:02x}").repeat(15)
        ),
        "bytea" => format!(
            "x'{}'",
            format!("{number:02x}").repeat(usize::from(number) + 1)
        ),
        "text" => format!("'{name} {number} ö''\\ '"),
        "bigint" => (1_000_000_000_000 + i64::from(number)).to_string(),
        "integer" => number.to_string(),
        "smallint" => (i64::from(number) - 1_440).to_string(),
        "boolean" => (number % 2).to_string(),
        other => panic!("a column of type {other}"),
    }
}

/// Adds a row to every table.
fn add_rows(sqlite: &Connection, tables: &Tables, number: u8) {
    for (table, columns) in tables {
        let names: Vec<&str> = columns.keys().map(String::as_str).collect();
        let values: Vec<String> = columns
            .iter()
            .map(|(name, column)| literal(table, name, column, number))
            .collect();
        let sql = format!(
            "insert into {table} ({}) values ({})",
            names.join(", "),
            values.join(", ")
        );
        let added = sqlite.execute(&sql, ());
        added.unwrap_or_else(|error| panic!("{table}: {error}"));
    }
}

/// Returns a table's rows in a form that both engines share.
async fn rows(
    database: &DirectConnection,
    engine: Engine,
    table: &str,
    columns: &BTreeMap<String, Column>,
) -> Vec<TextRow> {
    let column = |(name, (kind, _)): (&String, &Column)| match (engine, kind.as_str()) {
        (Engine::Sqlite, _) => name.clone(),
        (Engine::Postgres, "uuid") if name == "link_id" => {
            format!("replace(replace({name}::text, '{NO_LINK}', ''), '-', '')")
        }
        (Engine::Postgres, "uuid") => format!("replace({name}::text, '-', '')"),
        (Engine::Postgres, "bytea") => format!("encode({name}, 'hex')"),
        (Engine::Postgres, "boolean") => format!("{name}::int"),
        (Engine::Postgres, _) => format!("{name}::text"),
    };
    let columns: Vec<String> = columns.iter().map(column).collect();
    // The finished move is named in `instance`.
    let filter = match table {
        "instance" => "where name <> 'moved_from'",
        _ => "",
    };
    let sql = format!("select {} from {table} {filter}", columns.join(", "));
    let mut rows = database.rows(&sql).await;
    rows.sort();
    rows
}

async fn assert_equal(sqlite: &TestDatabase, postgres: &DirectConnection, tables: &Tables) {
    let source = sqlite.direct_connection().await;
    for (table, columns) in tables {
        let ours = rows(&source, Engine::Sqlite, table, columns).await;
        let theirs = rows(postgres, Engine::Postgres, table, columns).await;
        assert!(!ours.is_empty(), "{table} has no rows");
        assert_eq!(ours, theirs, "{table}");
    }
}

/// Returns the definitions of all constraints and indexes.
async fn definitions(postgres: &DirectConnection) -> Vec<TextRow> {
    let sql = "select conrelid::regclass::text, conname::text, pg_get_constraintdef(oid)
               from pg_constraint where connamespace = current_schema()::regnamespace
               union all
               select tablename::text, indexname::text, replace(indexdef, current_schema() || '.', '')
               from pg_indexes where schemaname = current_schema()
               order by 1, 2, 3";
    postgres.rows(sql).await
}

/// Waits until the number of the moving process's sessions that wait for a lock, or of all its
/// sessions, is as expected.
async fn wait_for_sessions(
    postgres: &DirectConnection,
    session: &str,
    filter: &str,
    expected: &str,
) {
    let sql = format!(
        "select count(*) from pg_stat_activity where application_name = '{session}' and {filter}"
    );
    let begun = Instant::now();
    while postgres.rows(&sql).await != [[Some(expected.to_owned())]] {
        assert!(begun.elapsed() < WAIT_MAX, "no session is {filter}");
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

/// Starts a move, kills it when it waits for the lock that `lock` takes, and releases the lock.
async fn interrupt(
    sqlite: &TestDatabase,
    postgres: &TestDatabase,
    arguments: [&str; 2],
    lock: &str,
) {
    let locked = postgres.direct_connection().await;
    locked.run("begin").await;
    locked.run(lock).await;
    let session = arguments[1].rsplit('=').next().unwrap();
    let mut moving = spawn_move(sqlite, arguments);
    let watching = postgres.direct_connection().await;
    wait_for_sessions(&watching, session, "wait_event_type = 'Lock'", "1").await;
    moving.kill().unwrap();
    moving.wait().unwrap();
    locked.run("rollback").await;
    wait_for_sessions(&watching, session, "true", "0").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_move_of_every_table_ends_with_equal_rows() {
    let sqlite = TestDatabase::migrated(Engine::Sqlite).await;
    let target = TestDatabase::new(Engine::Postgres).await;
    ServerProcess::run(&target, &["migrate"]).unwrap();
    let postgres = target.direct_connection().await;
    let tables = tables(&postgres).await;
    let migrated = definitions(&postgres).await;
    let to = format!("{}&application_name={SESSION}", target.url());
    let direct = Connection::open(sqlite.folder().join("tributary.db")).unwrap();
    direct.pragma_update(None, "foreign_keys", false).unwrap();
    for number in 0..3 {
        add_rows(&direct, &tables, number);
    }

    // Interrupted before the target knows of the move.
    let lock = "lock table clicks in share mode";
    interrupt(&sqlite, &target, ["--to", &to], lock).await;
    // Interrupted while a table in the middle is being copied.
    let known = &tables["known_values"];
    let conflict = format!(
        "insert into known_values (app_id, kind, value) values ({}, {}, {})",
        literal("known_values", "app_id", &known["app_id"], 0).replace("x'", "'"),
        literal("known_values", "kind", &known["kind"], 0),
        literal("known_values", "value", &known["value"], 0)
    );
    interrupt(&sqlite, &target, ["--to", &to], &conflict).await;
    let copied = postgres
        .rows("select count(*) from move_tables where is_copied")
        .await;
    let copied: usize = copied[0][0].as_ref().unwrap().parse().unwrap();
    assert!(
        copied > 10 && copied < tables.len(),
        "{copied} tables are copied"
    );
    let refused = ServerProcess::run(&target, &["admin", "organization", "list"]).unwrap_err();
    assert!(refused.contains("has not finished"), "{refused}");

    // These changes are after the copy of their tables.
    add_rows(&direct, &tables, 3);
    for change in [
        "delete from clicks where click_id = (select min(click_id) from clicks)",
        "update clicks set user_agent = 'changed' where user_agent is not null",
        "update devices set device_id = 'renamed' where device_id like '%1%'",
    ] {
        assert!(direct.execute(change, ()).unwrap() > 0, "{change}");
    }
    let printed = run_move(&sqlite, &["--to", &to]).unwrap();
    assert!(
        printed.contains("Resuming") && printed.contains("Verified"),
        "{printed}"
    );
    assert_equal(&sqlite, &postgres, &tables).await;

    add_rows(&direct, &tables, 4);
    let printed = run_move(&sqlite, &["--to", &to, "--cut-over"]).unwrap();
    assert!(printed.contains("Cut over"), "{printed}");
    assert_equal(&sqlite, &postgres, &tables).await;
    assert_eq!(definitions(&postgres).await, migrated);
    let next = "insert into rollup_increments (app_id, body)
                select app_id, '' from apps limit 1 returning increment_id";
    assert_eq!(
        postgres.rows(next).await,
        [[Some("1000000000005".to_owned())]]
    );
    let printed = run_move(&sqlite, &["--to", &to, "--cut-over"]).unwrap();
    assert!(printed.contains("already finished"), "{printed}");

    // The source keeps its rows, accepts no changes, and can be used again on demand only.
    let refused = direct
        .execute("update apps set name = 'X'", ())
        .unwrap_err();
    assert!(
        refused.to_string().contains("this database was moved"),
        "{refused}"
    );
    let refused = ServerProcess::run(&sqlite, &["migrate"]).unwrap_err();
    assert!(refused.contains("moved to another database"), "{refused}");
    run_move(&sqlite, &["--cancel"]).unwrap();
    assert!(direct.execute("update apps set name = 'X'", ()).unwrap() > 0);
    let left = "select count(*) from sqlite_schema where name like 'move%'";
    let left: i64 = direct.query_row(left, (), |row| row.get(0)).unwrap();
    assert_eq!(left, 0, "the schema is as it was");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_move_back_ends_with_equal_rows() {
    let sqlite = TestDatabase::migrated(Engine::Sqlite).await;
    let source = TestDatabase::new(Engine::Postgres).await;
    ServerProcess::run(&source, &["migrate"]).unwrap();
    let postgres = source.direct_connection().await;
    let tables = tables(&postgres).await;
    let direct = Connection::open(sqlite.folder().join("tributary.db")).unwrap();
    direct.pragma_update(None, "foreign_keys", false).unwrap();
    for number in 0..4 {
        add_rows(&direct, &tables, number);
    }
    run_move(&sqlite, &["--to", &source.url(), "--cut-over"]).unwrap();
    let migrated = definitions(&postgres).await;

    let back = TestDatabase::new(Engine::Sqlite).await;
    let from = format!("{}&application_name={BACK_SESSION}", source.url());
    let printed = run_move(&back, &["--from", &from]).unwrap();
    assert!(printed.contains("Verified"), "{printed}");
    let refused = ServerProcess::run(&back, &["admin", "organization", "list"]).unwrap_err();
    assert!(refused.contains("there is no database"), "{refused}");
    for change in [
        "delete from clicks where click_id = (select min(click_id::text)::uuid from clicks)",
        "update clicks set user_agent = 'changed' where user_agent is not null",
        "update devices set device_id = 'renamed' where device_id like '%1%'",
        "insert into known_values select app_id, 'new', value from known_values",
    ] {
        postgres.run(change).await;
    }
    let lock = "lock table known_values in access exclusive mode";
    interrupt(&back, &source, ["--from", &from], lock).await;
    let printed = run_move(&back, &["--from", &from, "--cut-over"]).unwrap();
    assert!(
        printed.contains("Resuming") && printed.contains("Cut over"),
        "{printed}"
    );
    assert_equal(&back, &postgres, &tables).await;
    let indexes = "select name, sql from sqlite_schema order by name";
    let (created, moved) = (sqlite.direct_connection(), back.direct_connection());
    run_move(&sqlite, &["--cancel"]).unwrap();
    assert_eq!(
        moved.await.rows(indexes).await,
        created.await.rows(indexes).await
    );
    let printed = run_move(&back, &["--from", &from, "--cut-over"]).unwrap();
    assert!(printed.contains("already finished"), "{printed}");
    ServerProcess::run(&back, &["migrate"]).unwrap();

    let change = "do $$ begin update apps set name = 'X'; raise 'changed';
                  exception when read_only_sql_transaction then null; end $$";
    postgres.run(change).await;
    let refused = ServerProcess::run(&source, &["migrate"]).unwrap_err();
    assert!(refused.contains("moved to another database"), "{refused}");
    ServerProcess::run(&source, &["move", "--cancel"]).unwrap();
    postgres.run("update apps set name = 'X'").await;
    assert_eq!(definitions(&postgres).await, migrated);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refuses_a_target_with_data_and_another_move() {
    let sqlite = TestDatabase::migrated(Engine::Sqlite).await;
    let target = TestDatabase::new(Engine::Postgres).await;
    ServerProcess::run(&target, &["admin", "organization", "create", "A"]).unwrap();
    let refused = run_move(&sqlite, &["--to", &target.url()]).unwrap_err();
    assert!(refused.contains("already contains data"), "{refused}");

    let empty = TestDatabase::new(Engine::Postgres).await;
    run_move(&sqlite, &["--to", &empty.url()]).unwrap();
    let other = TestDatabase::migrated(Engine::Sqlite).await;
    let refused = run_move(&other, &["--to", &empty.url()]).unwrap_err();
    assert!(refused.contains("another unfinished move"), "{refused}");
    // A migration may replace tables, and with them the triggers that log changes.
    let direct = Connection::open(sqlite.folder().join("tributary.db")).unwrap();
    direct
        .execute_batch("drop trigger move_log_events_insert")
        .unwrap();
    let refused = run_move(&sqlite, &["--to", &empty.url(), "--cut-over"]).unwrap_err();
    assert!(
        refused.contains("was migrated after the move began"),
        "{refused}"
    );
}
