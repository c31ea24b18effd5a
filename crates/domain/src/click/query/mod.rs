//! The parameters of a click's URL, cleaned, before anybody asks what they mean.
//!
//! Operators paste macros that no network expanded, and the networks append the real value behind them, so
//! the first value that is one wins. What the networks send is found wherever it stands: a URL full of other
//! parameters must not cost a paid tap its click id.

use crate::click::encoding::{Plus, cleaned, decode};
use std::collections::BTreeSet;

/// Parameters of one click, at most.
pub const PARAMETERS_MAX: usize = 50;
/// Bytes of a click's parameters, names and values together, at most.
pub const PARAMETERS_BYTES_MAX: usize = 4_096;
/// Characters of ids, URLs, and of values that nobody knows. Longer ones are cut.
pub const ID_CHARS_MAX: usize = 500;
/// Characters of names, and of words that people chose. Longer ones are cut.
pub const NAME_CHARS_MAX: usize = 200;

/// What a parameter holds, and with it how it is cleaned and how dear it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// A network's click id: opaque.
    ClickId,
    /// Another id: opaque.
    Id,
    /// A name or a word.
    Word,
    /// Something that only the app knows.
    Other,
}

/// Every parameter that means something to us.
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
    const fn plus(self) -> Plus {
        match self {
            Self::ClickId | Self::Id => Plus::Itself,
            Self::Word | Self::Other => Plus::Space,
        }
    }

    const fn chars_max(self) -> usize {
        match self {
            Self::ClickId | Self::Id | Self::Other => ID_CHARS_MAX,
            Self::Word => NAME_CHARS_MAX,
        }
    }
}

/// A parameter that survived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parameter {
    /// As we write it where we know it, otherwise as it was sent.
    pub(super) name: String,
    /// By which it is compared.
    pub(super) key: String,
    /// Cleaned.
    pub(super) value: String,
    /// Whether it was sent as it stands here, with nothing to clean.
    pub(super) is_exact: bool,
}

/// The parameters of a click's URL: cleaned, each once, within their limits, in the order of the URL.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClickParameters(Vec<Parameter>);

impl ClickParameters {
    /// Reads a query, without its `?`.
    pub fn read(query: &str) -> Self {
        let mut seen = BTreeSet::new();
        let mut found: Vec<(Kind, Parameter)> = query
            .split('&')
            .filter_map(parameter)
            .filter(|(_, parameter)| seen.insert(parameter.key.clone()))
            .collect();
        // Stable: the order of the URL within each kind.
        let mut dearest_first: Vec<usize> = (0..found.len()).collect();
        dearest_first.sort_by_key(|index| found[*index].0);
        let mut bytes = 0;
        let mut kept: Vec<usize> = dearest_first
            .into_iter()
            .filter(|index| {
                let Parameter { name, value, .. } = &found[*index].1;
                let fits = bytes + name.len() + value.len() <= PARAMETERS_BYTES_MAX;
                bytes += if fits { name.len() + value.len() } else { 0 };
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
        Self(found.into_iter().map(|(_, parameter)| parameter).collect())
    }

    /// The value of a parameter, by its name in lower case.
    pub(super) fn get(&self, key: &str) -> Option<String> {
        let found = self.0.iter().find(|parameter| parameter.key == key);
        found.map(|parameter| parameter.value.clone())
    }

    /// The value of a parameter, where nothing of it had to be cleaned away.
    pub(super) fn exact(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|parameter| parameter.key == key);
        found
            .filter(|parameter| parameter.is_exact)
            .map(|parameter| parameter.value.as_str())
    }

    /// Every parameter.
    pub(super) fn all(&self) -> &[Parameter] {
        &self.0
    }
}

/// Whether a parameter is one of ours, by its name in lower case.
pub(super) fn is_known(key: &str) -> bool {
    KNOWN.iter().any(|(_, names)| names.contains(&key))
}

fn parameter(pair: &str) -> Option<(Kind, Parameter)> {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    let name = cleaned(&decode(name, Plus::Space), NAME_CHARS_MAX)?;
    let key = name.to_ascii_lowercase();
    let kind = kind_of(&key);
    let sent = decode(value, kind.plus());
    let whole = cleaned(&sent, usize::MAX)?;
    if is_macro(&whole) {
        return None;
    }
    let value: String = whole.chars().take(kind.chars_max()).collect();
    let is_exact = value == sent;
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

/// Whether a network should have put something else in this place: `{{campaign.id}}`, `{keyword}`,
/// `__AID__`.
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
