//! What is risky about the files and folders that a configuration names, and about its own file.

use super::Config;
use super::layers::{Layers, SettingSource};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The bits of a file's mode that concern anybody but its owner.
const MODE_OTHERS: u32 = 0o077;

/// A database in a folder that is not there cannot be made.
pub(super) fn folders(config: &Config, layers: &Layers) -> Vec<String> {
    let missing = config.missing_database_folder().into_iter();
    let place = layers.location("database_url");
    missing
        .map(|folder| {
            let folder = folder.display();
            format!(
                "{place} names a file in {folder}, which does not exist: the database cannot be made \
                 there. Make the folder, or correct the path."
            )
        })
        .collect()
}

/// A secret in a file that others can read is not one.
pub(super) fn secrets(layers: &Layers) -> Vec<String> {
    let holds_secret = |path: &str| {
        let setting = layers.setting(path)?;
        let text = setting.value.as_str()?;
        let is_secret = match path {
            "secret_key" => !text.is_empty(),
            _ => super::database::redacted(text) != text,
        };
        match &setting.source {
            SettingSource::File(file) if is_secret && is_readable_by_others(file) => {
                Some(file.clone())
            }
            _ => None,
        }
    };
    ["secret_key", "database_url"]
        .iter()
        .filter_map(|path| Some((path, holds_secret(path)?)))
        .map(|(path, file)| {
            let file = file.display();
            format!("`{path}` is a secret, and others can read {file}: chmod 600 {file}")
        })
        .collect()
}

fn is_readable_by_others(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|metadata| metadata.permissions().mode() & MODE_OTHERS != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    #[rstest]
    #[case::open(0o644, 1)]
    #[case::group(0o640, 1)]
    #[case::closed(0o600, 0)]
    fn a_file_with_a_secret_should_be_ones_own(#[case] mode: u32, #[case] warnings: usize) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tributary.toml");
        fs::write(&file, format!("secret_key = \"{KEY}\"")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let config = Config::load(Some(&file), std::iter::empty()).unwrap();
        assert_eq!(config.warnings().len(), warnings, "{:?}", config.warnings());
    }
}
