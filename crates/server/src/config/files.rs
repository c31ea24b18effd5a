//! Warns about risky files and folders named in the configuration, and about the settings file
//! itself.

use super::Config;
use super::layers::{Layers, SettingSource};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Mode bits for group and others.
const MODE_OTHERS: u32 = 0o077;

/// Warns if the database's folder does not exist, because it is not created automatically.
pub(super) fn folders(config: &Config, layers: &Layers) -> Vec<String> {
    let missing = config.missing_database_folder().into_iter();
    let location = layers.location("database_url");
    missing
        .map(|folder| {
            let folder = folder.display();
            format!(
                "{location} names a file in {folder}, which does not exist: the database cannot be \
                 created. Create the folder, or correct the path."
            )
        })
        .collect()
}

/// Warns about secrets in a file that other users can read.
pub(super) fn secrets(layers: &Layers) -> Vec<String> {
    let holds_secret = |path: &str| {
        let setting = layers.setting(path)?;
        let text = setting.value.as_str()?;
        let is_secret = match path {
            "secret_key" | "next_secret_key" => !text.is_empty(),
            _ => super::database::redacted(text) != text,
        };
        match &setting.source {
            SettingSource::File(file) if is_secret && is_readable_by_others(file) => {
                Some(file.clone())
            }
            _ => None,
        }
    };
    [
        "secret_key",
        "next_secret_key",
        "database_url",
        "database_read_url",
        "mail.url",
    ]
    .iter()
    .filter_map(|path| Some((path, holds_secret(path)?)))
    .map(|(path, file)| {
        let file = file.display();
        format!("`{path}` is a secret, but other users can read {file}: run chmod 600 {file}")
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
    fn warns_about_a_readable_file_with_a_secret(#[case] mode: u32, #[case] warnings: usize) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tributary.toml");
        fs::write(&file, format!("secret_key = \"{KEY}\"")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let config = Config::load(Some(&file), std::iter::empty()).unwrap();
        assert_eq!(config.warnings().len(), warnings, "{:?}", config.warnings());
    }
}
