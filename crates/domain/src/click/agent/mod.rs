//! What a browser says it is.
//!
//! Browsers have learned to say less, and some of what they still say is a filler that looks like an answer.
//! A filler is read as "unknown": taken for an answer, it would contradict every current phone.

pub use super::bot::BotReason;

use super::encoding::cleaned;
use crate::device::{Platform, TRAIT_CHARS_MAX};

/// The version of Safari from which on it no longer tells the version of the system. Its own version is the
/// system's.
const FROZEN_SINCE_SAFARI: u32 = 26;
/// What it says instead. Both are also true versions of older phones.
const FROZEN_VERSIONS: &[&str] = &["18.6", "18.7"];
/// The model that Chrome gives every phone, and the version that goes with it.
const FILLER_MODEL: &str = "K";
/// What Firefox says where others name a model.
const FORM_FACTORS: &[&str] = &["Mobile", "Tablet", "TV", "U", "wv"];

/// What a browser runs on, as far as it tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Which platform.
    pub platform: Platform,
    /// Such as `17.5`; nothing where the browser only sends a filler.
    pub os_version: Option<String>,
    /// Such as `iPhone15,2`; nothing where the browser does not tell.
    pub model: Option<String>,
}

/// The client hints that a browser sends with a request, as their headers hold them: quoted strings.
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
    /// Reads the headers of a click.
    pub fn read(user_agent: Option<&str>, hints: ClientHints<'_>) -> Self {
        let user_agent = user_agent.unwrap_or_default();
        let platform = platform(user_agent, hints);
        let (os_version, model) = match platform {
            Platform::Ios => (ios_version(user_agent), ios_model(user_agent)),
            Platform::Android => android(user_agent, hints),
            Platform::Web => (None, None),
        };
        let kept = |text: String| cleaned(&text, TRAIT_CHARS_MAX);
        Self {
            platform,
            os_version: os_version.and_then(kept),
            model: model.and_then(kept),
        }
    }
}

/// An iPad in its default setting calls itself a Macintosh, and is one for all that we can see.
fn platform(user_agent: &str, hints: ClientHints<'_>) -> Platform {
    let says = |word| user_agent.contains(word);
    if says("Windows Phone") {
        // It names every other platform, too.
        Platform::Web
    } else if says("iPhone") || says("iPad") || says("iPod") {
        Platform::Ios
    } else if says("Android") || hints.platform.and_then(unquoted).as_deref() == Some("Android") {
        Platform::Android
    } else {
        Platform::Web
    }
}

fn ios_version(user_agent: &str) -> Option<String> {
    // The in-app browsers of network_a ask the system, not the browser engine.
    if let Some(version) = field(user_agent, "FBSV/") {
        return Some(version.to_owned());
    }
    let safari = version_after(user_agent, "Version/");
    let major = |version: &str| version.split('.').next()?.parse::<u32>().ok();
    if let Some(safari) = safari.filter(|version| major(version) >= Some(FROZEN_SINCE_SAFARI)) {
        return Some(safari.to_owned());
    }
    let system = ["iPhone OS ", "CPU OS ", "iOS "]
        .into_iter()
        .find_map(|before| version_after(user_agent, before))?;
    let system = system.replace('_', ".");
    // Without Safari's own version nobody can tell an old phone from a frozen text.
    let is_frozen = safari.is_none() && FROZEN_VERSIONS.contains(&system.as_str());
    (!is_frozen).then_some(system)
}

/// Safari never names the model; in-app browsers do: `FBDV/iPhone15,2`, `Instagram 335.0 (iPhone15,2; …`.
fn ios_model(user_agent: &str) -> Option<String> {
    if let Some(model) = field(user_agent, "FBDV/") {
        return Some(model.to_owned());
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
    words.find(is_model).map(str::to_owned)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Version and model of an Android browser. Client hints are the truth where they are sent; on a first
/// redirect they never are.
fn android(user_agent: &str, hints: ClientHints<'_>) -> (Option<String>, Option<String>) {
    let hinted_version = hints.platform_version.and_then(unquoted);
    let hinted_version = hinted_version.map(|version| without_zeros(&version).to_owned());
    let hinted_model = hints.model.and_then(unquoted);
    let said = parse_android_comment(user_agent);
    let version = field(user_agent, "FBSV/").or(said.0).map(str::to_owned);
    let model = field(user_agent, "FBDV/").or(said.1).map(str::to_owned);
    (hinted_version.or(version), hinted_model.or(model))
}

/// What stands in `(Linux; Android 13; SM-S918B Build/TP1A; wv)`.
fn parse_android_comment(user_agent: &str) -> (Option<&str>, Option<&str>) {
    let Some((_, rest)) = user_agent.split_once("Android ") else {
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

/// What stands before the bracket that closes the text's own; a model's name may hold a pair.
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

/// The value of a field such as `FBSV/17.5;`, which is never the last of its bracket without a `]`.
fn field<'a>(user_agent: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = user_agent.split_once(name)?;
    let value = rest.split([';', ']']).next().unwrap_or_default().trim();
    (!value.is_empty()).then_some(value)
}

fn version_after<'a>(user_agent: &'a str, before: &str) -> Option<&'a str> {
    version_at(user_agent.split_once(before)?.1)
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

/// `14.0.0` is what the device itself calls `14`.
fn without_zeros(version: &str) -> &str {
    let mut version = version;
    while let Some(shorter) = version.strip_suffix(".0") {
        version = shorter;
    }
    version
}

/// The text of a structured header's string; nothing when it is empty, which is how "none" is sent.
fn unquoted(header: &str) -> Option<String> {
    let inner = header.trim().strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::with_capacity(inner.len());
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        text.push(if letter == '\\' {
            letters.next()?
        } else {
            letter
        });
    }
    cleaned(&text, TRAIT_CHARS_MAX)
}

#[cfg(test)]
mod tests;
