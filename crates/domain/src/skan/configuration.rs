//! An app's stored configuration, and changes to it.
//!
//! There are two counters. The version counts changes to the conversion-value mapping; postbacks
//! are decoded with these versions, so old ones are kept. The revision counts every stored change,
//! so that two people who edit the configuration at the same time do not overwrite each other's
//! changes unnoticed.

use crate::skan::document::Document;
use crate::skan::meaning::DocumentMeaning;
use crate::vocabulary::change::Change;
use crate::vocabulary::revision::Precondition;
use crate::vocabulary::time::Timestamp;

/// `If-Match: *` matches any existing configuration.
const ANY_TAG: &str = "*";

/// An app's conversion-value configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// The part that a PUT replaces.
    pub document: Document,
    /// Version of the conversion-value mapping; 0 before the first PUT.
    pub version: i64,
    /// Number of stored changes; 0 if nothing was stored.
    pub revision: i64,
    /// Time of the last stored change.
    pub updated_at: Option<Timestamp>,
}

impl Configuration {
    /// Returns the configuration of an app that was never configured.
    pub const fn never_configured() -> Self {
        Self {
            document: Document::disabled(),
            version: 0,
            revision: 0,
            updated_at: None,
        }
    }

    /// Returns the entity tag without quotes. `acceptTestSignals` is stored with the app and can
    /// change without a revision here, so the tag includes it.
    pub fn tag(&self) -> String {
        let signals = if self.document.accept_test_signals {
            "t"
        } else {
            ""
        };
        format!("{}.{}{signals}", self.version, self.revision)
    }

    /// Returns whether the configuration satisfies a precondition, so that a change may proceed.
    ///
    /// Besides the tag, the bare version (`7`) is accepted, because clients see that number in the
    /// document. The bare version does not change when a value is only renamed, so it does not
    /// detect such a change; the tag does.
    pub fn satisfies(&self, precondition: &Precondition) -> bool {
        let exists = self.version > 0 || self.revision > 0;
        let (tag, version) = (self.tag(), self.version.to_string());
        match precondition {
            Precondition::None => true,
            // Not `Precondition::admits`, which assumes that the object exists.
            Precondition::AnyOf(candidates) => candidates.iter().any(|candidate| {
                *candidate == tag || *candidate == version || (exists && candidate == ANY_TAG)
            }),
        }
    }
}

/// Effect of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplaceOutcome {
    /// The same document; nothing is stored.
    Unchanged,
    /// Different names or switches, same mapping; stored under the current version.
    SameMeaning,
    /// The mapping changed: the same value may have another meaning from now on. Stored as a new
    /// version.
    NewVersion,
}

/// A configuration after a change, with the effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigurationUpdate {
    /// The configuration to store, or the current one if nothing changed.
    pub configuration: Configuration,
    /// Effect of the change.
    pub outcome: ReplaceOutcome,
}

/// Replaces the document. The first document always creates version 1, so that version 0 always
/// means "never configured".
pub fn replace(current: &Configuration, document: Document, now: Timestamp) -> ConfigurationUpdate {
    let outcome = if current.version == 0 {
        ReplaceOutcome::NewVersion
    } else if document == current.document {
        ReplaceOutcome::Unchanged
    } else if DocumentMeaning::of(&document) == DocumentMeaning::of(&current.document) {
        ReplaceOutcome::SameMeaning
    } else {
        ReplaceOutcome::NewVersion
    };
    apply_outcome(current, document, outcome, now)
}

/// Changes the switches, which are not part of the mapping. The switches can be set before the
/// first PUT. Setting them creates no version, because there is no mapping yet.
pub fn patch(
    current: &Configuration,
    enabled: Change<bool>,
    accept_test_signals: Change<bool>,
    now: Timestamp,
) -> ConfigurationUpdate {
    let mut document = current.document.clone();
    enabled.apply(&mut document.enabled, false);
    accept_test_signals.apply(&mut document.accept_test_signals, false);
    let outcome = if document == current.document {
        ReplaceOutcome::Unchanged
    } else {
        ReplaceOutcome::SameMeaning
    };
    apply_outcome(current, document, outcome, now)
}

fn apply_outcome(
    current: &Configuration,
    document: Document,
    outcome: ReplaceOutcome,
    now: Timestamp,
) -> ConfigurationUpdate {
    if outcome == ReplaceOutcome::Unchanged {
        return ConfigurationUpdate {
            configuration: current.clone(),
            outcome,
        };
    }
    let versions = i64::from(outcome == ReplaceOutcome::NewVersion);
    let configuration = Configuration {
        document,
        version: current.version.saturating_add(versions),
        revision: current.revision.saturating_add(1),
        updated_at: Some(now),
    };
    ConfigurationUpdate {
        configuration,
        outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skan::samples::{document, on, value, window};
    use rstest::rstest;

    const BEFORE: Timestamp = Timestamp::from_millis(1_000);
    const NOW: Timestamp = Timestamp::from_millis(2_000);

    fn configured(version: i64, revision: i64) -> Configuration {
        let values = [value("Install", Some(0), &[on("install").at_least(1)])];
        let document = document(&[window(0, &values)]);
        Configuration {
            document,
            version,
            revision,
            updated_at: Some(BEFORE),
        }
    }

    fn numbers(updated: &ConfigurationUpdate) -> (ReplaceOutcome, i64, i64, Option<Timestamp>) {
        let Configuration {
            version,
            revision,
            updated_at,
            ..
        } = updated.configuration;
        (updated.outcome, version, revision, updated_at)
    }

    #[test]
    fn an_unconfigured_app_has_a_disabled_document_of_version_0() {
        let configuration = Configuration::never_configured();
        assert_eq!(configuration.document, Document::disabled());
        assert_eq!(configuration.tag(), "0.0");
        assert_eq!(configuration.updated_at, None);
    }

    #[rstest]
    #[case::the_same(|_: &mut Document| {}, ReplaceOutcome::Unchanged, 7, 9, BEFORE)]
    #[case::renamed(
        |d: &mut Document| d.windows[0].values[0].name = "Installed".to_owned(),
        ReplaceOutcome::SameMeaning, 7, 10, NOW)]
    #[case::switched_off(
        |d: &mut Document| d.enabled = false,
        ReplaceOutcome::SameMeaning, 7, 10, NOW)]
    #[case::another_number(
        |d: &mut Document| d.windows[0].values[0].fine_value = Some(1),
        ReplaceOutcome::NewVersion, 8, 10, NOW)]
    #[case::another_number_and_renamed(
        |d: &mut Document| d.windows[0].values[0] = value("A", Some(1), &[on("a").at_least(1)]),
        ReplaceOutcome::NewVersion, 8, 10, NOW)]
    fn a_put_makes_a_version_when_a_meaning_changes(
        #[case] change: fn(&mut Document),
        #[case] outcome: ReplaceOutcome,
        #[case] version: i64,
        #[case] revision: i64,
        #[case] updated_at: Timestamp,
    ) {
        let current = configured(7, 9);
        let mut document = current.document.clone();
        change(&mut document);
        let updated = replace(&current, document.clone(), NOW);
        assert_eq!(
            numbers(&updated),
            (outcome, version, revision, Some(updated_at))
        );
        assert_eq!(updated.configuration.document, document);
    }

    #[rstest]
    #[case::of_an_empty_document(Configuration::never_configured(), Document::disabled(), 1)]
    #[case::of_a_full_document(Configuration::never_configured(), configured(0, 0).document, 1)]
    #[case::after_a_patch(
        Configuration { revision: 1, ..Configuration::never_configured() },
        Document::disabled(), 2)]
    fn the_first_put_makes_version_1(
        #[case] current: Configuration,
        #[case] document: Document,
        #[case] revision: i64,
    ) {
        let updated = replace(&current, document, NOW);
        assert_eq!(
            numbers(&updated),
            (ReplaceOutcome::NewVersion, 1, revision, Some(NOW))
        );
    }

    #[rstest]
    #[case::nothing(Change::Keep, Change::Keep, (true, false), ReplaceOutcome::Unchanged)]
    #[case::the_same(
        Change::Set(true), Change::Set(false), (true, false), ReplaceOutcome::Unchanged)]
    #[case::off(Change::Set(false), Change::Keep, (false, false), ReplaceOutcome::SameMeaning)]
    #[case::null_is_off(Change::Reset, Change::Reset, (false, false), ReplaceOutcome::SameMeaning)]
    #[case::test_signals(
        Change::Keep, Change::Set(true), (true, true), ReplaceOutcome::SameMeaning)]
    fn a_patch_changes_the_switches_and_no_version(
        #[case] enabled: Change<bool>,
        #[case] accept_test_signals: Change<bool>,
        #[case] expected: (bool, bool),
        #[case] outcome: ReplaceOutcome,
    ) {
        let current = configured(7, 9);
        let updated = patch(&current, enabled, accept_test_signals, NOW);
        let document = &updated.configuration.document;
        assert_eq!((document.enabled, document.accept_test_signals), expected);
        assert_eq!(document.windows, current.document.windows);
        let (revision, updated_at) = if outcome == ReplaceOutcome::Unchanged {
            (9, BEFORE)
        } else {
            (10, NOW)
        };
        assert_eq!(numbers(&updated), (outcome, 7, revision, Some(updated_at)));
    }

    #[test]
    fn a_patch_before_the_first_put_makes_no_version() {
        let never = Configuration::never_configured();
        let updated = patch(&never, Change::Set(true), Change::Keep, NOW);
        assert_eq!(
            numbers(&updated),
            (ReplaceOutcome::SameMeaning, 0, 1, Some(NOW))
        );
    }

    #[rstest]
    #[case::no_precondition(None, (7, 9), true)]
    #[case::the_tag(Some(&["7.9"][..]), (7, 9), true)]
    #[case::the_version(Some(&["7"][..]), (7, 9), true)]
    #[case::one_of_several(Some(&["6.8", "7.9"][..]), (7, 9), true)]
    #[case::an_earlier_revision(Some(&["7.8"][..]), (7, 9), false)]
    #[case::an_earlier_version(Some(&["6"][..]), (7, 9), false)]
    #[case::the_bare_revision(Some(&["9"][..]), (7, 9), false)]
    #[case::anything(Some(&["*"][..]), (7, 9), true)]
    #[case::anything_once_patched(Some(&["*"][..]), (0, 1), true)]
    #[case::anything_when_there_is_nothing(Some(&["*"][..]), (0, 0), false)]
    #[case::version_0_when_there_is_nothing(Some(&["0"][..]), (0, 0), true)]
    #[case::no_tag(Some(&[][..]), (7, 9), false)]
    fn a_precondition_names_the_tag_or_the_version(
        #[case] tags: Option<&[&str]>,
        #[case] (version, revision): (i64, i64),
        #[case] expected: bool,
    ) {
        let precondition = tags.map_or(Precondition::None, |tags| {
            Precondition::AnyOf(tags.iter().map(|tag| (*tag).to_owned()).collect())
        });
        assert_eq!(
            configured(version, revision).satisfies(&precondition),
            expected
        );
    }
}
