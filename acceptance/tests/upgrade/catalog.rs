//! The tables of a database, their rows, and their definitions.

use std::collections::BTreeMap;
use tributary_testkit::{DirectConnection, Engine, TextRow};

/// A column of a table.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) name: String,
    /// Type, as the engine calls it.
    pub(super) kind: String,
    pub(super) is_nullable: bool,
    /// Whether the database assigns the values.
    pub(super) is_generated: bool,
}

/// The tables of a schema, without the list of migrations.
#[derive(Debug)]
pub(super) struct Catalog(BTreeMap<String, Vec<Column>>);

impl Catalog {
    pub(super) async fn read(database: &DirectConnection, engine: Engine) -> Self {
        let sql = match engine {
            Engine::Sqlite => {
                "select found.name, columns.name, lower(columns.type), \"notnull\" = 0 and pk = 0, 0
                 from sqlite_schema as found, pragma_table_info(found.name) as columns
                 where found.type = 'table' and found.name not like 'sqlite%'
                   and found.name <> 'schema_migrations'
                 order by found.name, cid"
            }
            Engine::Postgres => {
                "select table_name, column_name, data_type, (is_nullable = 'YES')::int,
                        (identity_generation is not distinct from 'ALWAYS')::int
                 from information_schema.columns
                 where table_schema = current_schema() and table_name <> 'schema_migrations'
                 order by table_name, ordinal_position"
            }
        };
        let mut tables = BTreeMap::<String, Vec<Column>>::new();
        for row in database.rows(sql).await {
            let mut values = row.into_iter().map(Option::unwrap);
            let mut next = || values.next().unwrap();
            let (table, name, kind) = (next(), next(), next());
            let (is_nullable, is_generated) = (next() == "1", next() == "1");
            tables.entry(table).or_default().push(Column {
                name,
                kind,
                is_nullable,
                is_generated,
            });
        }
        Self(tables)
    }

    pub(super) fn tables(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(super) fn has(&self, table: &str) -> bool {
        self.0.contains_key(table)
    }

    pub(super) fn columns(&self, table: &str) -> &[Column] {
        &self.0[table]
    }
}

/// Rows of a table.
#[derive(Debug)]
pub(super) struct TableRows {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<TextRow>,
}

/// All rows, by table.
pub(super) type Snapshot = BTreeMap<String, TableRows>;

/// Reads all rows.
pub(super) async fn snapshot(database: &DirectConnection, catalog: &Catalog) -> Snapshot {
    let mut tables = Snapshot::new();
    for table in catalog.tables() {
        let columns = catalog.columns(table).iter();
        let columns: Vec<String> = columns.map(|column| column.name.clone()).collect();
        let sql = format!("select {} from {table}", columns.join(", "));
        let rows = database.rows(&sql).await;
        tables.insert(table.to_owned(), TableRows { columns, rows });
    }
    tables
}

/// Describes all tables, columns, indexes and constraints, and the statistics that migrations store.
pub(super) async fn definitions(database: &DirectConnection, engine: Engine) -> Vec<TextRow> {
    let statements: &[&str] = match engine {
        // The list of migrations got a column that older versions did not create with it, so the
        // statement that SQLite keeps of it may differ.
        Engine::Sqlite => &[
            "select type, name, tbl_name, sql from sqlite_schema where name <> 'schema_migrations'
             order by 1, 2",
            "select name, type, \"notnull\", pk from pragma_table_info('schema_migrations') order by cid",
            "select tbl, idx, stat from sqlite_stat1 order by 1, 2",
        ],
        Engine::Postgres => &[
            "select table_name, column_name, ordinal_position, data_type, is_nullable, column_default,
                    collation_name, identity_generation
             from information_schema.columns
             where table_schema = current_schema() and table_name <> 'schema_migrations' order by 1, 3",
            "select column_name, data_type, is_nullable, collation_name from information_schema.columns
             where table_schema = current_schema() and table_name = 'schema_migrations' order by 1",
            "select conrelid::regclass::text, conname, pg_get_constraintdef(oid), convalidated from pg_constraint
             where connamespace = current_schema()::regnamespace order by 1, 2",
            "select tablename, indexname, replace(indexdef, current_schema() || '.', '') from pg_indexes
             where schemaname = current_schema() order by 1, 2",
            "select relname, relkind, reloptions::text,
                    (select bool_and(indisvalid) from pg_index where indexrelid = pg_class.oid)
             from pg_class where relnamespace = current_schema()::regnamespace order by 1",
            "select attrelid::regclass::text, attname, attstorage from pg_attribute
             join pg_class on pg_class.oid = attrelid
             where relnamespace = current_schema()::regnamespace and attnum > 0 and not attisdropped
               and relkind = 'r' and relname <> 'schema_migrations' order by 1, 2",
        ],
    };
    let mut all = Vec::new();
    for sql in statements {
        all.extend(database.rows(sql).await);
    }
    all
}

/// Returns the problems that SQLite's own checks find.
pub(super) async fn damage(database: &DirectConnection, engine: Engine) -> Vec<String> {
    if engine != Engine::Sqlite {
        return Vec::new();
    }
    let mut found = Vec::new();
    for check in ["pragma integrity_check", "pragma foreign_key_check"] {
        found.extend(database.rows(check).await);
    }
    let found = found.into_iter().map(|row| format!("{row:?}"));
    found.filter(|row| row != "[Some(\"ok\")]").collect()
}

/// Returns the number of the newest migration.
pub(super) async fn newest(database: &DirectConnection) -> i64 {
    let sql = "select coalesce(max(number), 0) from schema_migrations";
    let rows = database.rows(sql).await;
    rows[0][0].as_ref().unwrap().parse().unwrap()
}
