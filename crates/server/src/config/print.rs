//! Prints the effective settings as TOML, with their sources and without secrets.

use super::database::{HIDDEN, redacted};
use super::layers::{Layers, Setting, SettingSource};
use std::fmt::Write as _;
use toml::Value;

/// Renders the settings. Called when the configuration is loaded, so that the secrets need not be
/// kept for printing.
pub(super) fn redacted_toml(layers: &Layers) -> String {
    let mut text = String::new();
    let mut current_section = "";
    for setting in &layers.settings {
        let (section, key) = setting.path.rsplit_once('.').unwrap_or(("", &setting.path));
        // Writing to a `String` cannot fail.
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
        ("secret_key" | "next_secret_key", Value::String(key)) if !key.is_empty() => {
            Value::String(HIDDEN.to_owned())
        }
        // An argument may be a token.
        ("secret_key_command" | "next_secret_key_command", Value::Array(words)) => {
            let hidden = words.iter().skip(1).map(|_| Value::from(HIDDEN));
            Value::Array(words.iter().take(1).cloned().chain(hidden).collect())
        }
        ("database_url" | "database_read_url" | "mail.url", Value::String(url)) => {
            Value::String(redacted(url))
        }
        // Some rate providers need a token in the query.
        ("rates.url" | "rates.second_url", Value::String(url)) => match url.split_once('?') {
            Some((base, _)) => Value::String(format!("{base}?{HIDDEN}")),
            None => setting.value.clone(),
        },
        (_, value) => value.clone(),
    }
}

fn origin_comment(source: &SettingSource) -> String {
    match source {
        SettingSource::Default => String::new(),
        // `{:?}` escapes line breaks in the file name, which would end the comment.
        SettingSource::File(file) => format!("  # {:?}", file.display().to_string()),
        SettingSource::Variable(name) => format!("  # {name}"),
        SettingSource::Argument(name) => format!("  # {name}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, defaults};
    use secrecy::ExposeSecret as _;
    use std::iter;

    #[test]
    fn the_printed_settings_parse_to_the_same_values() {
        let printed = Config::load(None, iter::empty()).unwrap().to_toml();
        assert_eq!(toml::from_str::<toml::Table>(&printed).unwrap(), defaults());
    }

    #[test]
    fn prints_sources_but_no_secrets() {
        let key = "c0ffee".repeat(11)[..64].to_owned();
        let environment = [
            ("TRIBUTARY_SECRET_KEY".to_owned(), key.clone()),
            (
                "TRIBUTARY_NEXT_SECRET_KEY_COMMAND".to_owned(),
                "vault,get,canary".to_owned(),
            ),
            (
                "TRIBUTARY_DATABASE_URL".to_owned(),
                "postgres://u:canary@h/d".to_owned(),
            ),
            (
                "TRIBUTARY_RATES__URL".to_owned(),
                "https://rates.example/x?token=canary".to_owned(),
            ),
            (
                "TRIBUTARY_MAIL__URL".to_owned(),
                "smtps://me:canary@mail.example.com".to_owned(),
            ),
            (
                "TRIBUTARY_MAIL__FROM".to_owned(),
                "reports@example.com".to_owned(),
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
