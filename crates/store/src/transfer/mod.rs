//! Moving all rows from one engine to the other, table by table.
//!
//! Both engines have the same tables with the same columns, so their catalogs say how to copy each
//! table. Rows travel as tuples of PostgreSQL's binary `COPY`, which PostgreSQL reads and writes
//! itself. Equal rows have equal tuples, so the same bytes also verify the copy.

mod tuple;

pub use tuple::{
    CellValue, RowSum, TUPLES_HEADER, TUPLES_TRAILER, TupleFault, TupleScanner, decode_cells,
    encode_cells,
};

use std::collections::BTreeMap;
use tributary_domain::vocabulary::digest::Digest;

/// Tables that are not moved: each engine has its own migrations, and only a distributed PostgreSQL
/// uses hints about due work.
pub const TABLES_NOT_MOVED: [&str; 2] = ["due_work", "schema_migrations"];

/// Prefix of the tables and triggers that exist only while a database is being moved.
pub const MOVE_PREFIX: &str = "move_";

/// The column that only PostgreSQL has: the digest of a campaign, an ad set and an ad, which is
/// short enough for an index.
const CAMPAIGN_DIGEST: &str = "campaign_digest";
/// Column with a link.
const LINK: &str = "link_id";

/// The columns from which [`CAMPAIGN_DIGEST`] is computed. A table may lack the last two.
const CAMPAIGN_COLUMNS: [&str; 3] = ["campaign_id", "adset_id", "ad_id"];

/// Returns the digest of the three ids. The separator is unambiguous, because PostgreSQL text cannot
/// contain NUL characters.
pub fn campaign_digest(campaign: &str, adset: &str, ad: &str) -> Digest {
    Digest::of(format!("{campaign}\0{adset}\0{ad}").as_bytes())
}

/// A table as an engine's catalog describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogTable {
    /// Name.
    pub name: String,
    /// Names and declared types of the columns, in order.
    pub columns: Vec<(String, String)>,
    /// Columns of the primary key, in order.
    pub key: Vec<String>,
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferType {
    /// 16 bytes.
    Uuid,
    /// A link in a key, whose columns are never null. A missing link is empty bytes on SQLite and
    /// zeros on PostgreSQL.
    OptionalLink,
    /// Bytes.
    Bytes,
    /// Text.
    Text,
    /// 64-bit integer.
    BigInt,
    /// 32-bit integer.
    Integer,
    /// 16-bit integer.
    SmallInt,
    /// Boolean; 0 or 1 on SQLite.
    Boolean,
}

impl TransferType {
    /// Returns the type for a pair of declared types, if values can move between them unchanged.
    fn of(sqlite: &str, postgres: &str) -> Option<Self> {
        match (sqlite.to_ascii_lowercase().as_str(), postgres) {
            ("blob", "uuid") => Some(Self::Uuid),
            ("blob", "bytea") => Some(Self::Bytes),
            ("text", "text") => Some(Self::Text),
            ("integer", "bigint") => Some(Self::BigInt),
            ("integer", "integer") => Some(Self::Integer),
            ("integer", "smallint") => Some(Self::SmallInt),
            ("integer", "boolean") => Some(Self::Boolean),
            _ => None,
        }
    }
}

/// Where the value of a column comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnOrigin {
    /// Both engines store it.
    Stored,
    /// Only PostgreSQL stores it: the digest of the SQLite columns at these positions.
    CampaignDigest([Option<usize>; 3]),
}

/// A column of a table that is moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferColumn {
    /// Name.
    pub name: String,
    /// Type.
    pub column_type: TransferType,
    /// Where its value comes from.
    pub origin: ColumnOrigin,
}

/// A table that is moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferTable {
    /// Name.
    pub name: String,
    /// Columns in PostgreSQL's order, which is the order in a tuple.
    pub columns: Vec<TransferColumn>,
    /// Names and types of the columns of SQLite's primary key, in order.
    pub key: Vec<(String, TransferType)>,
}

impl TransferTable {
    /// Returns the columns that both engines store.
    pub fn stored(&self) -> impl Iterator<Item = &TransferColumn> {
        self.columns
            .iter()
            .filter(|column| column.origin == ColumnOrigin::Stored)
    }

    /// Returns the names of the columns in a tuple, separated by commas.
    pub fn column_list(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|c| c.name.as_str()).collect();
        names.join(", ")
    }

    /// Returns the names of the stored columns, separated by commas.
    pub fn stored_list(&self) -> String {
        let names: Vec<&str> = self.stored().map(|column| column.name.as_str()).collect();
        names.join(", ")
    }

    /// Returns the names of the key's columns, separated by commas.
    pub fn key_list(&self) -> String {
        let names: Vec<&str> = self.key.iter().map(|(name, _)| name.as_str()).collect();
        names.join(", ")
    }

    /// Returns the types of the key's columns.
    pub fn key_types(&self) -> Vec<TransferType> {
        self.key.iter().map(|(_, kind)| *kind).collect()
    }
}

/// Why the tables of the two engines do not match.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the schemas of SQLite and PostgreSQL differ: {0}")]
pub struct SchemaMismatch(String);

/// Matches the tables of the two engines. Fails on the first table or column that only one of them
/// has.
pub fn match_schemas(
    sqlite: &[CatalogTable],
    postgres: &[CatalogTable],
) -> Result<Vec<TransferTable>, SchemaMismatch> {
    let moved = |table: &&CatalogTable| {
        !TABLES_NOT_MOVED.contains(&table.name.as_str()) && !table.name.starts_with(MOVE_PREFIX)
    };
    let mut found: BTreeMap<&str, &CatalogTable> = postgres
        .iter()
        .filter(moved)
        .map(|table| (table.name.as_str(), table))
        .collect();
    let mut matched = Vec::new();
    for table in sqlite.iter().filter(moved) {
        let name = &table.name;
        let postgres = found.remove(name.as_str());
        let postgres =
            postgres.ok_or_else(|| SchemaMismatch(format!("PostgreSQL has no table {name}")))?;
        matched.push(match_tables(table, postgres)?);
    }
    match found.keys().next() {
        Some(name) => Err(SchemaMismatch(format!("SQLite has no table {name}"))),
        None => Ok(matched),
    }
}

fn match_tables(
    sqlite: &CatalogTable,
    postgres: &CatalogTable,
) -> Result<TransferTable, SchemaMismatch> {
    let table = &sqlite.name;
    let mut unmatched: BTreeMap<&str, &str> = sqlite
        .columns
        .iter()
        .map(|(name, declared)| (name.as_str(), declared.as_str()))
        .collect();
    let mut columns = Vec::new();
    for (name, declared) in &postgres.columns {
        let column_type = match unmatched.remove(name.as_str()) {
            Some(stored) => TransferType::of(stored, declared).ok_or_else(|| {
                SchemaMismatch(format!("{table}.{name} is {stored} and {declared}"))
            })?,
            None if name == CAMPAIGN_DIGEST => TransferType::Bytes,
            None => return Err(SchemaMismatch(format!("SQLite has no {table}.{name}"))),
        };
        columns.push(TransferColumn {
            name: name.clone(),
            column_type,
            origin: ColumnOrigin::Stored,
        });
    }
    if let Some(name) = unmatched.keys().next() {
        return Err(SchemaMismatch(format!("PostgreSQL has no {table}.{name}")));
    }
    let stored: Vec<&str> = columns
        .iter()
        .map(|column| column.name.as_str())
        .filter(|name| *name != CAMPAIGN_DIGEST)
        .collect();
    let from = CAMPAIGN_COLUMNS.map(|name| stored.iter().position(|stored| *stored == name));
    for column in &mut columns {
        if column.name == CAMPAIGN_DIGEST {
            column.origin = ColumnOrigin::CampaignDigest(from);
        }
        if column.name == LINK && sqlite.key.contains(&column.name) {
            column.column_type = TransferType::OptionalLink;
        }
    }
    let key = sqlite.key.iter().filter_map(|name| {
        let column = columns.iter().find(|column| column.name == *name)?;
        Some((name.clone(), column.column_type))
    });
    let key: Vec<_> = key.collect();
    if key.is_empty() {
        return Err(SchemaMismatch(format!("{table} has no primary key")));
    }
    Ok(TransferTable {
        name: table.clone(),
        key,
        columns,
    })
}

/// Consecutive rows of a table.
#[derive(Debug, Clone, Default)]
pub struct RowChunk {
    /// The rows as tuples.
    pub tuples: Vec<u8>,
    /// Number of rows.
    pub rows: u64,
    /// Key of the last row as a tuple. `None` if there are no rows.
    pub last_key: Option<Vec<u8>>,
    /// Whether there are no rows after these.
    pub is_last: bool,
}

/// Changed rows of a table.
#[derive(Debug, Clone, Default)]
pub struct ChangeChunk {
    /// Position of the table in the list of tables.
    pub table: usize,
    /// Keys of the rows that were inserted, updated or deleted, as tuples.
    pub keys: Vec<u8>,
    /// Number of keys.
    pub key_count: u64,
    /// Those rows that exist, as tuples.
    pub tuples: Vec<u8>,
    /// Sum of those rows.
    pub sum: RowSum,
}

/// Identifies one move in both databases, so that an interrupted move cannot be resumed with another
/// database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveId(pub [u8; 16]);

/// How far the move of a database is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MovePhase {
    /// Changes are logged.
    Following,
    /// Changes are rejected, and some may still have to be copied.
    Fenced,
    /// Changes are rejected, and everything is in the other database.
    Moved,
}

impl MovePhase {
    /// Returns the stored form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Following => "following",
            Self::Fenced => "fenced",
            Self::Moved => "moved",
        }
    }

    /// Reads the stored form.
    pub fn parse(text: &str) -> Self {
        match text {
            "following" => Self::Following,
            "fenced" => Self::Fenced,
            _ => Self::Moved,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str, columns: &[(&str, &str)], key: &[&str]) -> CatalogTable {
        let column = |(name, declared): &(&str, &str)| ((*name).to_owned(), (*declared).to_owned());
        CatalogTable {
            name: name.to_owned(),
            columns: columns.iter().map(column).collect(),
            key: key.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn matches_columns_by_name_in_the_order_of_postgres() {
        let sqlite = table("t", &[("a", "BLOB"), ("b", "INTEGER")], &["b", "a"]);
        let postgres = table("t", &[("b", "boolean"), ("a", "uuid")], &["b", "a"]);
        let matched = match_schemas(&[sqlite], &[postgres]).unwrap();
        assert_eq!(matched[0].column_list(), "b, a");
        assert_eq!(matched[0].key_list(), "b, a");
        assert_eq!(
            matched[0].key_types(),
            [TransferType::Boolean, TransferType::Uuid]
        );
    }

    #[test]
    fn only_a_link_in_a_key_may_be_missing() {
        let types = |key: &str| {
            let sqlite = table("t", &[("k", "BLOB"), ("link_id", "BLOB")], &[key]);
            let postgres = table("t", &[("k", "uuid"), ("link_id", "uuid")], &[key]);
            let matched = match_schemas(&[sqlite], &[postgres]).unwrap();
            matched[0].columns.iter().map(|c| c.column_type).collect()
        };
        let found: [Vec<TransferType>; 2] = [types("k"), types("link_id")];
        assert_eq!(found[0], [TransferType::Uuid, TransferType::Uuid]);
        assert_eq!(found[1], [TransferType::Uuid, TransferType::OptionalLink]);
    }

    #[test]
    fn computes_the_digest_that_only_postgres_has() {
        let sqlite = table("t", &[("k", "TEXT"), ("campaign_id", "TEXT")], &["k"]);
        let digest = ("campaign_digest", "bytea");
        let postgres = table(
            "t",
            &[("k", "text"), digest, ("campaign_id", "text")],
            &["k"],
        );
        let matched = match_schemas(&[sqlite], &[postgres]).unwrap();
        let origin = ColumnOrigin::CampaignDigest([Some(1), None, None]);
        assert_eq!(matched[0].columns[1].origin, origin);
        assert_eq!(matched[0].stored_list(), "k, campaign_id");
    }

    #[test]
    fn rejects_schemas_that_differ() {
        let base = || table("t", &[("a", "TEXT")], &["a"]);
        let cases = [
            (table("u", &[("a", "text")], &["a"]), "no table t"),
            (table("t", &[("a", "bytea")], &["a"]), "t.a is"),
            (table("t", &[("b", "text")], &["b"]), "no t.b"),
            (table("t", &[], &[]), "no t.a"),
        ];
        for (postgres, expected) in cases {
            let refused = match_schemas(&[base()], &[postgres]).unwrap_err();
            assert!(refused.to_string().contains(expected), "{refused}");
        }
        let extra = table("u", &[("a", "text")], &["a"]);
        let both = [table("t", &[("a", "text")], &["a"]), extra];
        assert!(match_schemas(&[base()], &both).is_err());
    }
}
