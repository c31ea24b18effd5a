//! The secret that every other key of the instance is derived from.
//!
//! It comes from the configuration or, with `SQLite` only, from a file in the data folder that is made at the
//! first start (see `file.rs`). `PostgreSQL` is shared by several nodes, and a file would be another on each.

mod file;

pub use file::{SECRET_KEY_FILE, create_data_folder};

use crate::config::{self, Config, SECRET_KEY_BYTES};
use rand::TryRng as _;
use rand::rngs::SysRng;
use secrecy::ExposeSecret as _;
use std::io;
use std::path::PathBuf;

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
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// `PostgreSQL` without a key.
    #[error("secret_key must be set with PostgreSQL, since all nodes share it")]
    Required,
    /// The disk refuses.
    #[error(
        "{doing} {}: {source}; the data folder must be writable for the user of the server",
        path.display()
    )]
    Disk {
        /// What was tried.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system has no random bytes.
    #[error("the operating system gave no random bytes: {0}")]
    NoRandomness(String),
}

/// The secret key of this instance, on the disk when this returns.
pub fn load_or_create(config: &Config) -> Result<Key, SecretKeyError> {
    if let Some(digits) = &config.secret_key {
        return config::secret_key(digits.expose_secret()).map_err(SecretKeyError::Malformed);
    }
    if config.database().is_postgres() {
        return Err(SecretKeyError::Required);
    }
    file::in_folder(&config.data_dir, || {
        let mut key = [0; SECRET_KEY_BYTES];
        SysRng
            .try_fill_bytes(&mut key)
            .map_err(|error| SecretKeyError::NoRandomness(error.to_string()))?;
        Ok(key)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter;
    use std::path::Path;
    use tributary_domain::vocabulary::digest::hex;

    const KEY: Key = [0xab; SECRET_KEY_BYTES];

    #[test]
    fn the_configuration_is_asked_before_the_folder() {
        let environment = [("TRIBUTARY_SECRET_KEY".to_owned(), hex(&KEY))];
        let config = Config::load(None, environment.into_iter()).unwrap();
        assert_eq!(load_or_create(&config).unwrap(), KEY);
    }

    #[test]
    fn two_instances_have_two_keys() {
        let made = |folder: &Path| {
            let data_dir = (
                "TRIBUTARY_DATA_DIR".to_owned(),
                folder.display().to_string(),
            );
            load_or_create(&Config::load(None, iter::once(data_dir)).unwrap()).unwrap()
        };
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert_ne!(made(one.path()), made(other.path()));
    }
}
