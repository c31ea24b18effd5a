//! The secret key, from which all of the instance's other keys are derived.
//!
//! It comes from the configuration or, with SQLite only, from a file in the data folder that is
//! created at the first start (see `file.rs`). With PostgreSQL there may be several nodes, each of
//! which would create a different key.

mod file;

pub use file::{SECRET_KEY_FILE, create_data_folder};

use crate::config::{self, Config, SECRET_KEY_BYTES};
use secrecy::ExposeSecret as _;
use std::io;
use std::path::{Path, PathBuf};
use tributary_domain::runtime::Runtime;

type Key = [u8; SECRET_KEY_BYTES];

/// Reason why there is no key. Each message says what to change.
#[derive(Debug, thiserror::Error)]
pub enum SecretKeyError {
    /// The configured value is not a key.
    #[error("secret_key {0}")]
    Malformed(&'static str),
    /// The file does not contain a key.
    #[error(
        "{} is not a secret key: it must contain exactly 64 hexadecimal digits; restore it from a \
         backup, because stored credentials cannot be decrypted without it",
        .0.display()
    )]
    MalformedFile(PathBuf),
    /// Other users can read the file.
    #[error(
        "{} can be read by other users (mode {mode:o}); run chmod 600 on it, and consider whether \
         the key was leaked",
        path.display()
    )]
    ReadableByOthers {
        /// Path to the file.
        path: PathBuf,
        /// The file's mode.
        mode: u32,
    },
    /// The file is missing, but the database was set up with its key.
    #[error(
        "{} is missing, but the database was set up with a secret key; restore the file from a \
         backup or set secret_key (TRIBUTARY_SECRET_KEY) to its 64 digits. No new key was written, \
         because it could not decrypt the stored credentials",
        .0.display()
    )]
    Missing(PathBuf),
    /// PostgreSQL needs a configured key.
    #[error("secret_key is required with PostgreSQL, because all nodes share it")]
    Required,
    /// A file operation failed.
    #[error(
        "{action} {}; make the data folder writable by the server's user, or set data_dir \
         (TRIBUTARY_DATA_DIR) to another folder",
        path.display()
    )]
    Io {
        /// Attempted operation.
        action: &'static str,
        /// File or folder.
        path: PathBuf,
        /// Error from the operating system.
        source: io::Error,
    },
}

/// Returns the secret key, and creates it if necessary. The key is durable when this returns.
pub fn load_or_create(config: &Config, runtime: &Runtime) -> Result<Key, SecretKeyError> {
    match configured_key(config)? {
        Some(key) => Ok(key),
        None => file::load_or_create_in(&config.data_dir, || runtime.random_bytes()),
    }
}

/// Returns the secret key if there is one. Creates nothing, not even the folder.
pub fn load(config: &Config) -> Result<Option<Key>, SecretKeyError> {
    match configured_key(config)? {
        Some(key) => Ok(Some(key)),
        None => file::load_existing(&config.data_dir),
    }
}

/// Stores a key in a data folder that has none. Returns the key that is in the folder afterwards.
pub fn store_key(folder: &Path, key: Key) -> Result<Key, SecretKeyError> {
    file::load_or_create_in(folder, || key)
}

/// Returns the key from the configuration; `None` means that the key in the data folder applies.
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
    fn the_configured_key_takes_precedence() {
        let environment = [("TRIBUTARY_SECRET_KEY".to_owned(), hex(&KEY))];
        let config = Config::load(None, environment.into_iter()).unwrap();
        assert_eq!(load_or_create(&config, &system::runtime()).unwrap(), KEY);
        assert_eq!(load(&config).unwrap(), Some(KEY));
    }

    #[test]
    fn loading_does_not_create_a_key() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("data");
        let config = in_data_dir(&folder);
        assert_eq!(load(&config).unwrap(), None);
        assert!(!folder.exists());
        let created = load_or_create(&config, &system::runtime()).unwrap();
        assert_eq!(load(&config).unwrap(), Some(created));
    }

    fn in_data_dir(folder: &Path) -> Config {
        let data_dir = folder.display().to_string();
        let environment = iter::once(("TRIBUTARY_DATA_DIR".to_owned(), data_dir));
        Config::load(None, environment).unwrap()
    }

    #[test]
    fn two_instances_have_different_keys() {
        let created =
            |folder: &Path| load_or_create(&in_data_dir(folder), &system::runtime()).unwrap();
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert_ne!(created(one.path()), created(other.path()));
    }
}
