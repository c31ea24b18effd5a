//! Device details from a browser's headers.
//!
//! Browsers reveal less and less, and some of the values that they send are fillers that look real.
//! A filler is read as "unknown", because it would contradict every current phone.

pub use super::bot::BotReason;

use super::encoding::{cleaned, cut};
use crate::device::{Platform, TRAIT_CHARS_MAX};
use std::borrow::Cow;

/// First Safari version that no longer reveals the OS version. From then on Safari's own version
/// equals the OS version.
const FROZEN_SINCE_SAFARI: u32 = 26;
/// OS versions that Safari sends instead of the real one. Both are also real OS versions on older
/// phones.
const FROZEN_VERSIONS: &[&str] = &["18.6", "18.7"];
/// Model that Chrome sends for every phone, together with a filler version.
const FILLER_MODEL: &str = "K";
/// Values that Firefox sends in place of a model.
const FORM_FACTORS: &[&str] = &["Mobile", "Tablet", "TV", "U", "wv"];

/// Device of a browser, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Platform.
    pub platform: Platform,
    /// OS version, such as `17.5`; `None` if the browser sends a filler.
    pub os_version: Option<String>,
    /// Model, such as `iPhone15,2`; `None` if the browser does not send it.
    pub model: Option<String>,
}

/// Client hints in a request, as sent in the headers: quoted strings.
#[derive(Debug, Clone, Copy, Default)]
pub struct ClientHints<'a> {
    /// `Sec-CH-UA-Platform`.
    pub platform: Option<&'a str>,
    /// `Sec-CH-UA-Platform-Version`.
    pub platform_version: Option<&'a str>,
    /// `Sec-CH-UA-Model`.
    pub model: Option<&'a str>,
}

impl Agent {
    /// Parses the headers of a click.
    pub fn read(user_agent: Option<&str>, hints: ClientHints<'_>) -> Self {
        let user_agent = user_agent.unwrap_or_default();
        let platform = platform(user_agent, hints);
        let (os_version, model) = match platform {
            Platform::Ios => (ios_version(user_agent), ios_model(user_agent)),
            Platform::Android => android(user_agent, hints),
            Platform::Web => (None, None),
        };
        Self {
            platform,
            os_version,
            model,
        }
    }
}

/// Detects the platform. An iPad in its default setting reports itself as a Macintosh and cannot be
/// told apart.
fn platform(user_agent: &str, hints: ClientHints<'_>) -> Platform {
    let contains = |word| user_agent.contains(word);
    if contains("Windows Phone") {
        // Windows Phone names every other platform too.
        Platform::Web
    } else if contains("iPhone") || contains("iPad") || contains("iPod") {
        Platform::Ios
    } else if contains("Android") || hints.platform.is_some_and(names_android) {
        Platform::Android
    } else {
        Platform::Web
    }
}

fn names_android(platform: &str) -> bool {
    unquoted(platform).is_some_and(|platform| platform.trim() == "Android")
}

fn ios_version(user_agent: &str) -> Option<String> {
    // Meta's in-app browsers report the real OS version.
    if let Some(version) = field(user_agent, "FBSV/") {
        return clean_trait(version);
    }
    let safari = version_after(user_agent, "Version/");
    let major = |version: &str| version.split('.').next()?.parse::<u32>().ok();
    if let Some(safari) = safari.filter(|version| major(version) >= Some(FROZEN_SINCE_SAFARI)) {
        return clean_trait(safari);
    }
    let system = ["iPhone OS ", "CPU OS ", "iOS "]
        .into_iter()
        .find_map(|before| version_after(user_agent, before))?;
    let system = cut(system, TRAIT_CHARS_MAX).replace('_', ".");
    // Without Safari's own version, a frozen OS version cannot be told apart from that of an old
    // phone.
    let is_frozen = safari.is_none() && FROZEN_VERSIONS.contains(&system.as_str());
    (!is_frozen).then_some(system)
}

fn clean_trait(text: &str) -> Option<String> {
    cleaned(text, TRAIT_CHARS_MAX)
}

/// Reads the model. Safari never sends it. In-app browsers do: `FBDV/iPhone15,2`,
/// `Instagram 335.0 (iPhone15,2; …`.
fn ios_model(user_agent: &str) -> Option<String> {
    if let Some(model) = field(user_agent, "FBDV/") {
        return clean_trait(model);
    }
    let is_model = |word: &&str| {
        let number = ["iPhone", "iPad", "iPod"]
            .into_iter()
            .find_map(|family| word.strip_prefix(family));
        number.is_some_and(|number| {
            number
                .split_once(',')
                .is_some_and(|(family, member)| is_number(family) && is_number(member))
        })
    };
    let mut words = user_agent.split([' ', ';', '(', ')', '/', '[', ']']);
    words.find(is_model).and_then(clean_trait)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Reads version and model of an Android browser. Client hints take precedence, but browsers do not
/// send them on the first redirect.
fn android(user_agent: &str, hints: ClientHints<'_>) -> (Option<String>, Option<String>) {
    let hinted = |header: Option<&str>| clean_trait(&unquoted(header?)?);
    let hinted_version = hinted(hints.platform_version);
    let hinted_version = hinted_version.map(|version| without_zeros(&version).to_owned());
    let hinted_model = hinted(hints.model);
    let parsed = parse_android_comment(user_agent);
    let version = || {
        field(user_agent, "FBSV/")
            .or(parsed.0)
            .and_then(clean_trait)
    };
    let model = || {
        field(user_agent, "FBDV/")
            .or(parsed.1)
            .and_then(clean_trait)
    };
    (hinted_version.or_else(version), hinted_model.or_else(model))
}

/// Reads version and model from `(Linux; Android 13; SM-S918B Build/TP1A; wv)`.
fn parse_android_comment(user_agent: &str) -> (Option<&str>, Option<&str>) {
    let Some(rest) = after(user_agent, "Android ") else {
        return (None, None);
    };
    let version = version_at(rest);
    let inside = until_closed(rest);
    let is_locale = |part: &str| {
        matches!(part.as_bytes(), [a, b, b'-' | b'_', ..] if a.is_ascii_lowercase() && b.is_ascii_lowercase())
            && part.len() <= 5
    };
    let model = inside
        .split(';')
        .skip(1)
        .map(|part| part.split(" Build/").next().unwrap_or_default().trim())
        .find(|part| !is_locale(part))
        .filter(|part| !part.is_empty() && !part.starts_with("rv:"))
        .filter(|part| !FORM_FACTORS.contains(part));
    if model == Some(FILLER_MODEL) {
        (None, None)
    } else {
        (version, model)
    }
}

/// Returns the text before its closing bracket. A model name may contain a pair of brackets.
fn until_closed(text: &str) -> &str {
    let mut depth = 0_u32;
    let end = text.find(|c| match c {
        '(' => {
            depth += 1;
            false
        }
        ')' if depth == 0 => true,
        ')' => {
            depth -= 1;
            false
        }
        _ => false,
    });
    end.map_or(text, |end| &text[..end])
}

/// Returns the value of a field such as `FBSV/17.5;`, which ends with `;` or `]`.
fn field<'a>(user_agent: &'a str, name: &str) -> Option<&'a str> {
    let rest = after(user_agent, name)?;
    let value = rest.split([';', ']']).next().unwrap_or_default().trim();
    (!value.is_empty()).then_some(value)
}

fn version_after<'a>(user_agent: &'a str, before: &str) -> Option<&'a str> {
    version_at(after(user_agent, before)?)
}

/// Returns the text after the first occurrence of an ASCII marker. Looks for the marker's first
/// letter, which is rare: preparing a general search takes longer than such a short text.
fn after<'a>(text: &'a str, marker: &str) -> Option<&'a str> {
    let first = marker.chars().next()?;
    let mut rest = text;
    loop {
        let (_, found) = rest.split_at_checked(rest.find(first)?)?;
        if let Some(after) = found.strip_prefix(marker) {
            return Some(after);
        }
        rest = found.get(first.len_utf8()..)?;
    }
}

fn version_at(text: &str) -> Option<&str> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(text.len());
    let version = text[..end].trim_end_matches(['.', '_']);
    version
        .starts_with(|c: char| c.is_ascii_digit())
        .then_some(version)
}

/// Removes trailing `.0`, because devices report `14.0.0` as `14`.
fn without_zeros(version: &str) -> &str {
    let mut version = version;
    while let Some(shorter) = version.strip_suffix(".0") {
        version = shorter;
    }
    version
}

/// Parses the string of a structured header.
fn unquoted(header: &str) -> Option<Cow<'_, str>> {
    let inner = header.trim().strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    let mut text = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        text.push(if character == '\\' {
            characters.next()?
        } else {
            character
        });
    }
    Some(Cow::Owned(text))
}

#[cfg(test)]
mod tests;
