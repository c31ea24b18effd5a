//! A value as it was sent: a parsed tree, JSON text that is parsed only where a reader looks, or a field of a form.

use crate::json::JsonNode;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A value of a body or a form. It may be a secret, so it does not print.
#[derive(Clone, Copy)]
pub enum InputValue<'a> {
    /// Of a body whose every part matters: settings, money.
    Tree(&'a JsonNode),
    /// Of a body that mostly holds custom parameters, which are not parsed.
    Text(&'a RawValue),
    /// Of a form, trimmed. Only a box that is not ticked is empty.
    Form(&'a str),
}

impl<'a> InputValue<'a> {
    /// Returns whether the value is an object.
    pub fn is_object(self) -> bool {
        match self {
            Self::Tree(node) => matches!(node, JsonNode::Object(_)),
            Self::Text(raw) => raw.get().starts_with('{'),
            Self::Form(_) => false,
        }
    }

    pub(super) fn is_null(self) -> bool {
        match self {
            Self::Tree(node) => matches!(node, JsonNode::Null),
            Self::Text(raw) => raw.get() == "null",
            Self::Form(_) => false,
        }
    }

    /// The string, if it is one. Browsers cut strings in the middle of a character and send the half they have left: in
    /// a text it is replaced, since a name is never refused for its content.
    pub fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Tree(JsonNode::Text(text)) => Some(Cow::Borrowed(text)),
            Self::Tree(_) => None,
            Self::Text(raw) => {
                let read: Result<Lossy, _> = serde_json::from_str(raw.get());
                read.map(|text| Cow::Owned(text.0)).ok()
            }
            Self::Form(text) => Some(Cow::Borrowed(text)),
        }
    }

    /// The digits of the number, if it is one. A form has any text in their place.
    pub fn digits(self) -> Option<&'a str> {
        match self {
            Self::Tree(JsonNode::Number(digits)) => Some(digits),
            Self::Tree(_) => None,
            Self::Text(raw) => Some(raw.get()).filter(|text| {
                text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
            }),
            Self::Form(text) => Some(text),
        }
    }

    pub(super) fn flag(self) -> Option<bool> {
        match self {
            Self::Tree(JsonNode::Flag(flag)) => Some(*flag),
            Self::Tree(_) => None,
            Self::Text(raw) => serde_json::from_str(raw.get()).ok(),
            Self::Form(text) => Some(!text.is_empty()),
        }
    }

    pub(super) fn items(self) -> Option<Vec<Self>> {
        match self {
            Self::Tree(JsonNode::List(items)) => Some(items.iter().map(Self::Tree).collect()),
            Self::Tree(_) => None,
            Self::Text(raw) => {
                let items: Option<Vec<&RawValue>> = serde_json::from_str(raw.get()).ok();
                items.map(|items| items.into_iter().map(Self::Text).collect())
            }
            Self::Form(text) => {
                let items = text.split(['\n', ',']).map(str::trim);
                let items = items.filter(|item| !item.is_empty());
                Some(items.map(Self::Form).collect())
            }
        }
    }

    pub(super) fn members(self) -> Option<ObjectMembers<'a>> {
        match self {
            Self::Tree(JsonNode::Object(members)) => Some(ObjectMembers::Tree(members)),
            Self::Text(raw) => serde_json::from_str(raw.get())
                .ok()
                .map(ObjectMembers::Text),
            Self::Tree(_) | Self::Form(_) => None,
        }
    }
}

/// The members of an object, in the order they were sent.
#[derive(Debug)]
pub(super) enum ObjectMembers<'a> {
    Tree(&'a [(String, JsonNode)]),
    Text(RawMembers<'a>),
}

impl<'a> ObjectMembers<'a> {
    /// The first member of this name.
    pub(super) fn first(&self, name: &str) -> Option<InputValue<'a>> {
        match self {
            Self::Tree(members) => {
                let found = members.iter().find(|(member, _)| member == name);
                found.map(|(_, node)| InputValue::Tree(node))
            }
            Self::Text(RawMembers(members)) => {
                let found = members.iter().find(|(member, _)| member == name);
                found.map(|(_, raw)| InputValue::Text(raw))
            }
        }
    }

    /// The last member of this name, which counts in a browser.
    pub(super) fn last(&self, name: &str) -> Option<InputValue<'a>> {
        match self {
            Self::Tree(members) => {
                let found = members.iter().rfind(|(member, _)| member == name);
                found.map(|(_, node)| InputValue::Tree(node))
            }
            Self::Text(RawMembers(members)) => {
                let found = members.iter().rfind(|(member, _)| member == name);
                found.map(|(_, raw)| InputValue::Text(raw))
            }
        }
    }

    pub(super) fn each(&self) -> Vec<(&str, InputValue<'a>)> {
        match self {
            Self::Tree(members) => members
                .iter()
                .map(|(name, node)| (name.as_str(), InputValue::Tree(node)))
                .collect(),
            Self::Text(RawMembers(members)) => members
                .iter()
                .map(|(name, raw)| (name.as_ref(), InputValue::Text(raw)))
                .collect(),
        }
    }
}

/// An object, cut into its members.
#[derive(Debug)]
pub(super) struct RawMembers<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for RawMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = RawMembers<'de>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), raw)) = map.next_entry()? {
                    members.push((name, raw));
                }
                Ok(RawMembers(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

struct Lossy(String);

impl<'de> Deserialize<'de> for Lossy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Lossy;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a string")
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<Lossy, E> {
                Ok(Lossy(String::from_utf8_lossy(bytes).into_owned()))
            }
        }
        deserializer.deserialize_bytes(Text)
    }
}
