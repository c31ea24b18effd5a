//! Cleaned parameters of a click's URL, before they are interpreted.
//!
//! A URL may contain a macro that no network expanded, followed by the real value that the network
//! appended. The first value that is not a macro wins. Known parameters take precedence at any
//! position: a paid click must not lose its click id because its URL has too many other parameters.

use crate::click::encoding::{PlusDecoding, cleaned, cut, decode};
use std::collections::BTreeSet;

/// Maximum number of parameters per click.
pub const PARAMETERS_MAX: usize = 50;
/// Maximum size of a click's parameters in bytes, names and values together.
pub const PARAMETERS_BYTES_MAX: usize = 4_096;
/// Maximum length of ids, URLs and unknown values in characters. Longer ones are cut.
pub const ID_CHARS_MAX: usize = 500;
/// Maximum length of names and free text in characters. Longer ones are cut.
pub const NAME_CHARS_MAX: usize = 200;

/// Kind of a parameter. It determines how the parameter is cleaned, and its priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Opaque click id of a network.
    ClickId,
    /// Other opaque id.
    Id,
    /// Name or free text.
    Word,
    /// Parameter that only the app understands.
    Other,
}

/// All known parameters.
const KNOWN: &[(Kind, &[&str])] = &[
    (
        Kind::ClickId,
        &["fbclid", "gclid", "gbraid", "wbraid", "ttclid", "oppref"],
    ),
    (
        Kind::Id,
        &[
            "campaign_id",
            "adset_id",
            "adgroup_id",
            "ad_id",
            "creative_id",
            "fbp",
            "fbc",
            "ttp",
            "obref",
            "idfa",
            "gaid",
        ],
    ),
    (
        Kind::Word,
        &[
            "campaign_name",
            "adset_name",
            "adgroup_name",
            "ad_name",
            "placement",
            "site_source_name",
            "keyword",
            "utm_source",
            "utm_medium",
            "utm_campaign",
            "utm_content",
            "utm_term",
            "offer",
        ],
    ),
];

fn kind_of(name: &str) -> Kind {
    let known = KNOWN.iter().find(|(_, names)| names.contains(&name));
    match known {
        Some((kind, _)) => *kind,
        None if name.starts_with("utm_") => Kind::Word,
        None => Kind::Other,
    }
}

impl Kind {
    const fn plus(self) -> PlusDecoding {
        match self {
            Self::ClickId | Self::Id => PlusDecoding::Itself,
            Self::Word | Self::Other => PlusDecoding::Space,
        }
    }

    const fn chars_max(self) -> usize {
        match self {
            Self::ClickId | Self::Id | Self::Other => ID_CHARS_MAX,
            Self::Word => NAME_CHARS_MAX,
        }
    }
}

/// A cleaned parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parameter {
    /// Canonical name if known, otherwise the name as sent.
    pub(super) name: String,
    /// Name in lower case, for comparisons.
    pub(super) key: String,
    /// Cleaned value.
    pub(super) value: String,
    /// Whether cleaning left the value unchanged.
    pub(super) is_exact: bool,
}

impl Parameter {
    /// Returns the size that counts towards [`PARAMETERS_BYTES_MAX`].
    const fn bytes(&self) -> usize {
        self.name.len() + self.value.len()
    }
}

/// Cleaned parameters of a click's URL: each once, within the limits, in URL order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClickParameters(Vec<Parameter>);

impl ClickParameters {
    /// Parses a query, without its `?`.
    pub fn read(query: &str) -> Self {
        let mut found: Vec<(Kind, Parameter)> = query.split('&').filter_map(parameter).collect();
        remove_repetitions(&mut found);
        let bytes: usize = found.iter().map(|(_, one)| one.bytes()).sum();
        if found.len() > PARAMETERS_MAX || bytes > PARAMETERS_BYTES_MAX {
            keep_by_priority(&mut found);
        }
        Self(found.into_iter().map(|(_, parameter)| parameter).collect())
    }

    /// Returns the value of a parameter, by its name in lower case.
    pub(super) fn get(&self, key: &str) -> Option<String> {
        let found = self.0.iter().find(|parameter| parameter.key == key);
        found.map(|parameter| parameter.value.clone())
    }

    /// Returns the value of a parameter, if cleaning left it unchanged.
    pub(super) fn exact(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|parameter| parameter.key == key);
        found
            .filter(|parameter| parameter.is_exact)
            .map(|parameter| parameter.value.as_str())
    }

    /// Returns all parameters.
    pub(super) fn all(&self) -> &[Parameter] {
        &self.0
    }
}

/// Removes parameters that repeat an earlier one.
fn remove_repetitions(found: &mut Vec<(Kind, Parameter)>) {
    let mut seen = BTreeSet::new();
    let keys = found.iter().map(|(_, parameter)| parameter.key.as_str());
    let mut is_first = keys
        .map(|key| seen.insert(key))
        .collect::<Vec<bool>>()
        .into_iter();
    found.retain(|_| is_first.next() == Some(true));
}

/// Keeps as many parameters as the limits allow, by priority.
fn keep_by_priority(found: &mut Vec<(Kind, Parameter)>) {
    // A stable sort keeps the URL order within each kind.
    let mut by_priority: Vec<usize> = (0..found.len()).collect();
    by_priority.sort_by_key(|index| found[*index].0);
    let mut bytes = 0;
    let mut kept: Vec<usize> = by_priority
        .into_iter()
        .filter(|index| {
            let own = found[*index].1.bytes();
            let fits = bytes + own <= PARAMETERS_BYTES_MAX;
            bytes += if fits { own } else { 0 };
            fits
        })
        .take(PARAMETERS_MAX)
        .collect();
    kept.sort_unstable();
    let mut index = 0;
    found.retain(|_| {
        index += 1;
        kept.binary_search(&(index - 1)).is_ok()
    });
}

/// Returns whether a parameter is known, by its name in lower case.
pub(super) fn is_known(key: &str) -> bool {
    KNOWN.iter().any(|(_, names)| names.contains(&key))
}

fn parameter(pair: &str) -> Option<(Kind, Parameter)> {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    let name = cleaned(&decode(name, PlusDecoding::Space), NAME_CHARS_MAX)?;
    let key = name.to_ascii_lowercase();
    let kind = kind_of(&key);
    let raw = decode(value, kind.plus());
    let mut value = cleaned(&raw, usize::MAX)?;
    if is_macro(&value) {
        return None;
    }
    value.truncate(cut(&value, kind.chars_max()).len());
    let is_exact = value == raw;
    let name = if kind == Kind::Other {
        name
    } else {
        key.clone()
    };
    let parameter = Parameter {
        name,
        key,
        value,
        is_exact,
    };
    Some((kind, parameter))
}

/// Returns whether a value is an unexpanded macro: `{{campaign.id}}`, `{keyword}`, `__AID__`.
fn is_macro(value: &str) -> bool {
    let inner = value
        .strip_prefix("__")
        .and_then(|rest| rest.strip_suffix("__"));
    let is_word = |inner: &str| {
        !inner.is_empty()
            && inner
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    value.contains(['{', '}']) || inner.is_some_and(is_word)
}

#[cfg(test)]
mod tests;
