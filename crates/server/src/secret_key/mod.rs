//! The secret key, from which all of the instance's other keys are derived.
//!
//! It comes from the configuration (digits, a file or a command) or, with SQLite only, from a file in
//! the data folder that is created at the first start (see `file.rs`). With PostgreSQL there may be
//! several nodes, each of which would create a different key. During a rotation, there is a next key.

mod command;
mod file;

pub use command::CommandFailure;
pub use file::{NEXT_KEY_FILE, SECRET_KEY_FILE, create_data_folder};

use crate::config::{self, Config, SECRET_KEY_BYTES};
use secrecy::{ExposeSecret as _, SecretString};
use std::io;
use std::path::{Path, PathBuf};
use tributary_domain::keyring::KnownKeys;
use tributary_domain::runtime::Runtime;

type Key = [u8; SECRET_KEY_BYTES];

/// Reason why there is no key. Each message says what to change.
#[derive(Debug, thiserror::Error)]
pub enum SecretKeyError {
    /// The configured value is not a key.
    #[error("{setting} {expected}")]
    Malformed {
        /// Name of the setting.
        setting: &'static str,
        /// What is expected.
        expected: &'static str,
    },
    /// The command did not print a key.
    #[error("{setting}_command {reason}")]
    Command {
        /// Name of the setting.
        setting: &'static str,
        /// What went wrong, without what the command printed.
        reason: CommandFailure,
    },
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

/// Where a key comes from, according to the settings.
struct KeySource<'a> {
    /// Name of the setting.
    setting: &'static str,
    digits: Option<&'a SecretString>,
    file: Option<&'a Path>,
    command: &'a [String],
}

impl<'a> KeySource<'a> {
    fn current(config: &'a Config) -> Self {
        Self {
            setting: "secret_key",
            digits: config.secret_key.as_ref(),
            file: config.secret_key_file.as_deref(),
            command: &config.secret_key_command,
        }
    }

    fn next(config: &'a Config) -> Self {
        Self {
            setting: "next_secret_key",
            digits: config.next_secret_key.as_ref(),
            file: config.next_secret_key_file.as_deref(),
            command: &config.next_secret_key_command,
        }
    }

    /// Returns the key; `None` if the settings name none.
    fn load(&self) -> Result<Option<Key>, SecretKeyError> {
        let setting = self.setting;
        if let Some(digits) = self.digits {
            let key = config::secret_key(digits.expose_secret());
            let malformed = |expected| SecretKeyError::Malformed { setting, expected };
            return key.map(Some).map_err(malformed);
        }
        if let Some(path) = self.file {
            return file::read_any(path).map(Some);
        }
        if self.command.is_empty() {
            return Ok(None);
        }
        let failed = |reason| SecretKeyError::Command { setting, reason };
        command::run(self.command).map(Some).map_err(failed)
    }
}

/// Returns the secret keys, and creates the current one if necessary. It is durable when this
/// returns.
pub fn load_or_create(config: &Config, runtime: &Runtime) -> Result<KnownKeys, SecretKeyError> {
    if let Some(keys) = load(config)? {
        return Ok(keys);
    }
    Ok(KnownKeys {
        current: file::load_or_create_in(&config.data_dir, || runtime.random_bytes())?,
        next: load_next(config)?,
    })
}

/// Returns the secret keys if there is a current one. Creates nothing, not even the folder.
pub fn load(config: &Config) -> Result<Option<KnownKeys>, SecretKeyError> {
    let current = match KeySource::current(config).load()? {
        None if config.database().is_postgres() => return Err(SecretKeyError::Required),
        None => file::load_existing(&config.data_dir, SECRET_KEY_FILE)?,
        found => found,
    };
    let next = load_next(config)?;
    Ok(current.map(|current| KnownKeys { current, next }))
}

fn load_next(config: &Config) -> Result<Option<Key>, SecretKeyError> {
    match KeySource::next(config).load()? {
        None if !config.has_secret_key() => file::load_existing(&config.data_dir, NEXT_KEY_FILE),
        found => Ok(found),
    }
}

/// Stores a key in a data folder that has none. Returns the key that is in the folder afterwards.
pub fn store_key(folder: &Path, key: Key) -> Result<Key, SecretKeyError> {
    file::load_or_create_in(folder, || key)
}

/// Stores the next key in the data folder. Returns false if there is one already.
pub fn create_next(folder: &Path, key: Key) -> Result<bool, SecretKeyError> {
    Ok(file::create_next(folder, || key)? == key)
}

/// Makes the next key in the data folder the current one, after a rotation. Returns false if the keys
/// are in the settings instead.
pub fn replace_by_next(config: &Config) -> Result<bool, SecretKeyError> {
    if config.has_secret_key() || !config.data_dir.join(NEXT_KEY_FILE).exists() {
        return Ok(false);
    }
    file::replace_by_next(&config.data_dir)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system;
    use std::iter;
    use tributary_domain::vocabulary::digest::hex;

    const KEY: Key = [0xab; SECRET_KEY_BYTES];
    const NEXT: Key = [0xcd; SECRET_KEY_BYTES];

    fn created_key(config: &Config) -> Key {
        load_or_create(config, &system::runtime()).unwrap().current
    }

    fn existing_key(config: &Config) -> Option<Key> {
        load(config).unwrap().map(|keys| keys.current)
    }

    fn with(settings: &[(&str, &str)]) -> Config {
        let settings = settings.iter();
        let settings = settings.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        Config::load(None, settings).unwrap()
    }

    #[test]
    fn a_key_may_come_from_a_file_or_a_command() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mounted");
        std::fs::write(&file, hex(&KEY) + "\n").unwrap();
        let file = file.to_str().unwrap();
        let printed = format!("printf,{}", hex(&NEXT));
        let config = with(&[
            ("TRIBUTARY_SECRET_KEY_FILE", file),
            ("TRIBUTARY_NEXT_SECRET_KEY_COMMAND", &printed),
        ]);
        let keys = load(&config).unwrap().unwrap();
        assert_eq!((keys.current, keys.next), (KEY, Some(NEXT)));
        assert!(!config.to_toml().contains(&hex(&KEY)));
    }

    #[test]
    fn only_one_source_of_a_key_may_be_given() {
        let settings = [
            ("TRIBUTARY_SECRET_KEY".to_owned(), hex(&KEY)),
            ("TRIBUTARY_SECRET_KEY_FILE".to_owned(), "x".to_owned()),
        ];
        let error = Config::load(None, settings.into_iter()).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("more than once") && !text.contains("abab"),
            "{text}"
        );
    }

    #[test]
    fn the_next_key_in_the_data_folder_replaces_the_current_one_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let config = in_data_dir(folder.path());
        let first = created_key(&config);
        assert!(create_next(folder.path(), NEXT).unwrap());
        assert!(!create_next(folder.path(), KEY).unwrap(), "there is one");
        let keys = load(&config).unwrap().unwrap();
        assert_eq!((keys.current, keys.next), (first, Some(NEXT)));
        assert!(replace_by_next(&config).unwrap());
        let keys = load(&config).unwrap().unwrap();
        assert_eq!((keys.current, keys.next), (NEXT, None));
        assert!(!replace_by_next(&config).unwrap());
    }

    #[test]
    fn the_configured_key_takes_precedence() {
        let environment = [("TRIBUTARY_SECRET_KEY".to_owned(), hex(&KEY))];
        let config = Config::load(None, environment.into_iter()).unwrap();
        assert_eq!(created_key(&config), KEY);
        assert_eq!(existing_key(&config), Some(KEY));
    }

    #[test]
    fn loading_does_not_create_a_key() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("data");
        let config = in_data_dir(&folder);
        assert_eq!(existing_key(&config), None);
        assert!(!folder.exists());
        let created = created_key(&config);
        assert_eq!(existing_key(&config), Some(created));
    }

    fn in_data_dir(folder: &Path) -> Config {
        let data_dir = folder.display().to_string();
        let environment = iter::once(("TRIBUTARY_DATA_DIR".to_owned(), data_dir));
        Config::load(None, environment).unwrap()
    }

    #[test]
    fn two_instances_have_different_keys() {
        let created = |folder: &Path| created_key(&in_data_dir(folder));
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert_ne!(created(one.path()), created(other.path()));
    }
}
