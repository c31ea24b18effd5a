//! A value as received: a parsed tree, JSON text that is parsed on demand, or a form field.

use crate::json::JsonNode;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A value in a body or a form. It may be a secret, so it does not implement `Debug`.
#[derive(Clone, Copy)]
pub enum InputValue<'a> {
    /// Value in a body that is parsed completely, such as a body with settings or money.
    Tree(&'a JsonNode),
    /// Value in a body with many custom parameters; parsed only when it is read.
    Text(&'a RawValue),
    /// Trimmed value of a form field. It is empty only for an unchecked checkbox.
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

    /// Returns the string, if the value is one. Browsers may cut a string in the middle of a
    /// surrogate pair. In JSON text, the unpaired half is replaced instead of rejected.
    pub fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Tree(JsonNode::Text(text)) => Some(Cow::Borrowed(text)),
            Self::Tree(_) => None,
            Self::Text(raw) => {
                let read: Result<LossyText, _> = serde_json::from_str(raw.get());
                read.map(|text| Cow::Owned(text.0)).ok()
            }
            Self::Form(text) => Some(Cow::Borrowed(text)),
        }
    }

    /// Returns the digits, if the value is a number. For a form field this can be any text.
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

/// The members of an object, in the order received.
#[derive(Debug)]
pub(super) enum ObjectMembers<'a> {
    Tree(&'a [(String, JsonNode)]),
    Text(RawMembers<'a>),
}

impl<'a> ObjectMembers<'a> {
    /// Returns the first member with this name.
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

    /// Returns the last member with this name, as browsers do.
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

/// An object split into its members, whose values are not parsed yet.
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

struct LossyText(String);

impl<'de> Deserialize<'de> for LossyText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = LossyText;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a string")
            }

            fn visit_bytes<E: de::Error>(self, bytes: &[u8]) -> Result<LossyText, E> {
                Ok(LossyText(String::from_utf8_lossy(bytes).into_owned()))
            }
        }
        deserializer.deserialize_bytes(Text)
    }
}
