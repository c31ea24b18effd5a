//! Changes to a configuration, for the audit log.

use crate::audit::{Changes, FieldChange};
use crate::skan::configuration::Configuration;
use crate::skan::document::{ConversionValue, Document, Window};

/// Maximum length of a document in the log, in characters; the versions themselves are stored in
/// full.
const SHOWN_CHARS_MAX: usize = 2_000;

/// Returns the differences between two configurations.
pub fn differences(before: &Configuration, after: &Configuration) -> Vec<FieldChange> {
    let (old, new) = (&before.document, &after.document);
    let mut changes = Changes::new();
    changes.compare_values("enabled", old.enabled, new.enabled);
    changes.compare_values("currency", old.currency.as_str(), new.currency.as_str());
    changes.compare_values(
        "acceptTestSignals",
        old.accept_test_signals,
        new.accept_test_signals,
    );
    changes.compare_values("windows", summarize(old), summarize(new));
    changes.compare_values("version", before.version, after.version);
    changes.into_vec()
}

fn summarize(document: &Document) -> String {
    let value = |value: &ConversionValue| {
        let fine = value
            .fine_value
            .map(|fine| format!("{fine}/"))
            .unwrap_or_default();
        format!("{}={fine}{}", value.name, value.coarse_value.as_str())
    };
    let window = |window: &Window| {
        let off = if window.enabled { "" } else { " (off)" };
        let values: Vec<String> = window.values.iter().map(value).collect();
        format!("{}{off}: {}", window.index, values.join(", "))
    };
    let windows: Vec<String> = document.windows.iter().map(window).collect();
    windows.join("; ").chars().take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skan::samples::{document, on, value, window};

    #[test]
    fn the_log_contains_only_the_differences() {
        let before = Configuration::never_configured();
        let values = [value("Install", Some(0), &[on("install").at_least(1)])];
        let after = Configuration {
            document: document(&[window(0, &values)]),
            version: 1,
            revision: 1,
            updated_at: None,
        };
        let changes = differences(&before, &after);
        let fields: Vec<&str> = changes.iter().map(|change| change.field.as_str()).collect();
        assert!(
            fields.contains(&"windows") && fields.contains(&"version"),
            "{fields:?}"
        );
        assert!(!fields.contains(&"currency"), "{fields:?}");
        assert!(differences(&after, &after).is_empty());
    }
}
