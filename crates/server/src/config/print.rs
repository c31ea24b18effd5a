//! The settings in force, as TOML that says where each came from and keeps the secrets to itself.

use super::database::{HIDDEN, redacted};
use super::layers::{Layers, Setting, SettingSource};
use std::fmt::Write as _;
use toml::Value;

/// The settings as text. Made when the configuration is read, so that no secret is kept for it.
pub(super) fn redacted_toml(layers: &Layers) -> String {
    let mut text = String::new();
    let mut current_section = "";
    for setting in &layers.settings {
        let (section, key) = setting.path.rsplit_once('.').unwrap_or(("", &setting.path));
        // Writing to a String cannot fail.
        if section != current_section {
            let _infallible = write!(text, "\n[{section}]\n");
            current_section = section;
        }
        let _infallible = writeln!(
            text,
            "{key} = {}{}",
            redacted_value(setting),
            origin_comment(&setting.source)
        );
    }
    text
}

fn redacted_value(setting: &Setting) -> Value {
    match (setting.path.as_str(), &setting.value) {
        ("secret_key", Value::String(key)) if !key.is_empty() => Value::String(HIDDEN.to_owned()),
        ("database_url", Value::String(url)) => Value::String(redacted(url)),
        // Some who publish rates want a token, and have it in the query.
        ("rates.url" | "rates.second_url", Value::String(url)) => match url.split_once('?') {
            Some((place, _)) => Value::String(format!("{place}?{HIDDEN}")),
            None => setting.value.clone(),
        },
        (_, value) => value.clone(),
    }
}

fn origin_comment(source: &SettingSource) -> String {
    match source {
        SettingSource::Default => String::new(),
        // A comment ends with its line, so a line break in a file's name must not.
        SettingSource::File(file) => format!("  # {:?}", file.display().to_string()),
        SettingSource::Variable(name) => format!("  # {name}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, defaults};
    use secrecy::ExposeSecret as _;
    use std::iter;

    #[test]
    fn what_is_printed_can_be_read_again_and_is_the_same() {
        let printed = Config::load(None, iter::empty()).unwrap().to_toml();
        assert_eq!(toml::from_str::<toml::Table>(&printed).unwrap(), defaults());
    }

    #[test]
    fn secrets_are_not_printed_and_origins_are() {
        let key = "c0ffee".repeat(11)[..64].to_owned();
        let environment = [
            ("TRIBUTARY_SECRET_KEY".to_owned(), key.clone()),
            (
                "TRIBUTARY_DATABASE_URL".to_owned(),
                "postgres://u:canary@h/d".to_owned(),
            ),
            (
                "TRIBUTARY_RATES__URL".to_owned(),
                "https://rates.example/x?token=canary".to_owned(),
            ),
        ];
        let config = Config::load(None, environment.into_iter()).unwrap();
        for text in [
            config.to_toml(),
            format!("{config:?}"),
            format!("{:?}", config.database()),
        ] {
            assert!(!text.contains("canary") && !text.contains(&key), "{text}");
        }
        assert!(
            config
                .to_toml()
                .contains("secret_key = \"***\"  # TRIBUTARY_SECRET_KEY\n")
        );
        assert!(
            config
                .to_toml()
                .contains("database_url = \"postgres://u:***@h/d\"  # TRIB")
        );
        let super::super::DatabaseConfig::Postgres(url) = config.database() else {
            panic!("PostgreSQL")
        };
        assert_eq!(url.expose_secret(), "postgres://u:canary@h/d");
    }
}
