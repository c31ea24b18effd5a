//! Location of the data: parses `database_url` and removes its password for display.

use secrecy::{ExposeSecret as _, SecretString};
use std::path::{Path, PathBuf};

/// Default name of the SQLite file, in the data folder.
pub const SQLITE_FILE: &str = "tributary.db";

/// Placeholder for a secret.
pub(super) const HIDDEN: &str = "***";

/// Parameters in a `PostgreSQL` URL that may be shown. All others are hidden, including `password`.
const SHOWN_PARAMETERS: &[&str] = &[
    "application_name",
    "connect_timeout",
    "host",
    "port",
    "sslmode",
    "target_session_attrs",
];

/// Location of the data.
pub enum DatabaseConfig {
    /// SQLite, in this file.
    Sqlite(PathBuf),
    /// A `PostgreSQL` server. The URL may contain a password.
    Postgres(SecretString),
}

impl std::fmt::Debug for DatabaseConfig {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => formatter.debug_tuple("Sqlite").field(path).finish(),
            Self::Postgres(url) => formatter
                .debug_tuple("Postgres")
                .field(&redacted(url.expose_secret()))
                .finish(),
        }
    }
}

impl DatabaseConfig {
    /// Parses a `database_url`, or returns what is expected.
    pub(crate) fn parse(url: &str, data_dir: &Path) -> Result<Self, &'static str> {
        if url.is_empty() {
            return Ok(Self::Sqlite(data_dir.join(SQLITE_FILE)));
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Self::Postgres(SecretString::from(url)));
        }
        let Some(path) = url.strip_prefix("sqlite:") else {
            return Err("must be empty, sqlite:PATH or postgres://…");
        };
        // Accept sqlite:///path for /path, as other tools do.
        let path = path.strip_prefix("//").unwrap_or(path);
        if path.is_empty() || path.ends_with('/') {
            return Err("must name a file after sqlite:");
        }
        // `:memory:` would lose acknowledged data, and a parameter would silently become part of
        // the file name.
        if path.starts_with(':') || path.contains('?') {
            return Err("must name a file after sqlite:, without parameters");
        }
        Ok(Self::Sqlite(PathBuf::from(path)))
    }

    /// Checks a `database_read_url`, or returns what is expected.
    pub(super) fn check_read_url(url: &str) -> Result<(), &'static str> {
        match Self::parse(url, Path::new("")) {
            Ok(Self::Postgres(_)) => Ok(()),
            Ok(Self::Sqlite(_)) | Err(_) => Err("must be empty or postgres://…"),
        }
    }

    /// Returns the engine's name for metrics.
    pub const fn engine(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            Self::Postgres(_) => "postgres",
        }
    }

    /// Returns whether this is `PostgreSQL`.
    pub const fn is_postgres(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }
}

/// Removes the password from a `database_url`.
///
/// Does not use a URL parser: `PostgreSQL` accepts more than a URL parser does (several hosts with
/// ports, sockets), and must also hide passwords in text that does not parse. When in doubt, hides
/// more.
pub(super) fn redacted(url: &str) -> String {
    let Some((scheme, rest)) = url
        .split_once("://")
        .filter(|_| !url.starts_with("sqlite:"))
    else {
        return url.to_owned();
    };
    let (credentials, rest) = match rest.rsplit_once('@') {
        Some((credentials, rest)) => (Some(credentials), rest),
        None => (None, rest),
    };
    let credentials = match credentials.map(|text| text.split_once(':').ok_or(text)) {
        Some(Ok((user, _password))) => format!("{user}:{HIDDEN}@"),
        Some(Err(user)) => format!("{user}@"),
        None => String::new(),
    };
    let (host, parameters) = match rest.split_once('?') {
        Some((host, parameters)) => (host, format!("?{}", redacted_parameters(parameters))),
        None => (rest, String::new()),
    };
    format!("{scheme}://{credentials}{host}{parameters}")
}

fn redacted_parameters(parameters: &str) -> String {
    let shown = |pair: &str| match pair.split_once('=') {
        Some((name, _)) if !SHOWN_PARAMETERS.contains(&name) => format!("{name}={HIDDEN}"),
        _ => pair.to_owned(),
    };
    parameters
        .split('&')
        .map(shown)
        .collect::<Vec<_>>()
        .join("&")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::default("", "/data/tributary.db")]
    #[case::relative("sqlite:other.db", "other.db")]
    #[case::absolute("sqlite:/var/lib/t.db", "/var/lib/t.db")]
    #[case::as_others_write_it("sqlite:///var/lib/t.db", "/var/lib/t.db")]
    fn parses_sqlite_paths(#[case] url: &str, #[case] expected: &str) {
        match DatabaseConfig::parse(url, Path::new("/data")) {
            Ok(DatabaseConfig::Sqlite(path)) => assert_eq!(path, Path::new(expected)),
            other => panic!("{other:?}"),
        }
    }

    #[rstest]
    #[case::short("postgres://u:p@h/d")]
    #[case::long("postgresql://u:p@h:5432,h2:5433/d?sslmode=require")]
    fn parses_postgres_urls(#[case] url: &str) {
        assert!(
            DatabaseConfig::parse(url, Path::new("/data"))
                .unwrap()
                .is_postgres()
        );
    }

    #[rstest]
    #[case::other_engine("mysql://u:p@h/d")]
    #[case::bare_path("/var/lib/t.db")]
    #[case::nothing_after("sqlite:")]
    #[case::in_memory("sqlite::memory:")]
    #[case::parameters("sqlite:t.db?mode=ro")]
    #[case::a_folder("sqlite:/var/lib/")]
    fn rejects_other_urls(#[case] url: &str) {
        assert!(DatabaseConfig::parse(url, Path::new("/data")).is_err());
    }

    #[test]
    fn a_standby_is_a_postgres_server() {
        assert!(DatabaseConfig::check_read_url("postgres://u:p@h/d").is_ok());
        assert!(DatabaseConfig::check_read_url("sqlite:t.db").is_err());
        assert!(DatabaseConfig::check_read_url("standby").is_err());
    }

    #[rstest]
    #[case::password("postgres://u:secret@h:5432/d", "postgres://u:***@h:5432/d")]
    #[case::no_password("postgres://u@h/d", "postgres://u@h/d")]
    #[case::at_in_password("postgres://u:sec@ret@h/d", "postgres://u:***@h/d")]
    #[case::slash_in_password("postgres://u:sec/ret@h/d", "postgres://u:***@h/d")]
    #[case::parameter(
        "postgres://h/d?sslmode=require&password=secret",
        "postgres://h/d?sslmode=require&password=***"
    )]
    #[case::several_hosts("postgres://u:secret@a:1,b:2/d", "postgres://u:***@a:1,b:2/d")]
    #[case::sqlite("sqlite:///var/lib/t.db", "sqlite:///var/lib/t.db")]
    #[case::empty("", "")]
    fn redacts_passwords(#[case] url: &str, #[case] expected: &str) {
        assert_eq!(redacted(url), expected);
    }
}
