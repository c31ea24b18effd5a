//! The secret that every other key of the instance is derived from.
//!
//! It comes from the configuration or, with `SQLite` only, from a file in the data folder that is made at the
//! first start (see `file.rs`). `PostgreSQL` is shared by several nodes, and a file would be another on each.

mod file;

pub use file::{SECRET_KEY_FILE, create_data_folder};

use crate::config::{self, Config, SECRET_KEY_BYTES};
use secrecy::ExposeSecret as _;
use std::io;
use std::path::{Path, PathBuf};
use tributary_domain::runtime::Runtime;

type Key = [u8; SECRET_KEY_BYTES];

/// Why there is no key. Each says what to change.
#[derive(Debug, thiserror::Error)]
pub enum SecretKeyError {
    /// The configuration holds something else.
    #[error("secret_key {0}")]
    Malformed(&'static str),
    /// The file holds something else.
    #[error(
        "{} is not a secret key: it must hold 64 hexadecimal digits and nothing else; \
         restore it from a backup, since credentials stored with it cannot be read without it",
        .0.display()
    )]
    MalformedFile(PathBuf),
    /// Others may read the file.
    #[error(
        "{} can be read by others (mode {mode:o}); chmod 600 it, and think about whether \
         somebody has read it",
        path.display()
    )]
    ReadableByOthers {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The file is gone, and the database was set up with its key.
    #[error(
        "{} is missing, but the database was set up with a secret key; restore the file from a backup or set secret_key \
         (TRIBUTARY_SECRET_KEY) to its 64 digits. No new key was written, since it could not read the stored credentials",
        .0.display()
    )]
    Missing(PathBuf),
    /// `PostgreSQL` without a key.
    #[error("secret_key must be set with PostgreSQL, since all nodes share it")]
    Required,
    /// The disk refuses.
    #[error(
        "{action} {}; the data folder must be writable for the user of the server: change that, or set data_dir \
         (TRIBUTARY_DATA_DIR) to another folder",
        path.display()
    )]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The secret key of this instance, on the disk when this returns.
pub fn load_or_create(config: &Config, source: &Runtime) -> Result<Key, SecretKeyError> {
    match configured_key(config)? {
        Some(key) => Ok(key),
        None => file::load_or_create_in(&config.data_dir, || source.random_bytes()),
    }
}

/// The secret key of this instance where there is one already. Makes nothing, not even the folder.
pub fn load(config: &Config) -> Result<Option<Key>, SecretKeyError> {
    match configured_key(config)? {
        Some(key) => Ok(Some(key)),
        None => file::load_existing(&config.data_dir),
    }
}

/// Keeps this key in a data folder that has none; gives the one that is there then.
pub fn store_key(folder: &Path, key: Key) -> Result<Key, SecretKeyError> {
    file::load_or_create_in(folder, || key)
}

/// The key that the configuration holds; without one it is that of the data folder.
fn configured_key(config: &Config) -> Result<Option<Key>, SecretKeyError> {
    match &config.secret_key {
        Some(digits) => config::secret_key(digits.expose_secret())
            .map(Some)
            .map_err(SecretKeyError::Malformed),
        None if config.database().is_postgres() => Err(SecretKeyError::Required),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system;
    use std::iter;
    use tributary_domain::vocabulary::digest::hex;

    const KEY: Key = [0xab; SECRET_KEY_BYTES];

    #[test]
    fn the_configuration_is_asked_before_the_folder() {
        let environment = [("TRIBUTARY_SECRET_KEY".to_owned(), hex(&KEY))];
        let config = Config::load(None, environment.into_iter()).unwrap();
        assert_eq!(load_or_create(&config, &system::runtime()).unwrap(), KEY);
        assert_eq!(load(&config).unwrap(), Some(KEY));
    }

    #[test]
    fn looking_for_a_key_makes_none() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("data");
        let config = in_data_dir(&folder);
        assert_eq!(load(&config).unwrap(), None);
        assert!(!folder.exists());
        let made = load_or_create(&config, &system::runtime()).unwrap();
        assert_eq!(load(&config).unwrap(), Some(made));
    }

    fn in_data_dir(folder: &Path) -> Config {
        let data_dir = folder.display().to_string();
        let environment = iter::once(("TRIBUTARY_DATA_DIR".to_owned(), data_dir));
        Config::load(None, environment).unwrap()
    }

    #[test]
    fn two_instances_have_two_keys() {
        let made =
            |folder: &Path| load_or_create(&in_data_dir(folder), &system::runtime()).unwrap();
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert_ne!(made(one.path()), made(other.path()));
    }
}
