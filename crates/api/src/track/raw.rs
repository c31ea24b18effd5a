//! JSON that is cut into its members and not taken apart any further until somebody asks.
//!
//! `api::json` builds the whole tree and notices a name that stands twice; that is right for settings. Here
//! most of a body is `params` that nobody looks into, so a member stays the text it was sent as. Of two equal
//! names the last one counts, as browsers have it.

use crate::fields::wrong_type;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, de};
use serde_json::value::RawValue;
use std::borrow::Cow;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::number::whole;

/// An object, cut into its members.
#[derive(Debug)]
pub(super) struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Object<'a> {
    /// Nothing when it is no object.
    pub(super) fn of(raw: &'a RawValue) -> Option<Self> {
        serde_json::from_str(raw.get()).ok()
    }

    /// A member that is there and not null.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.0.iter().rev().find(|(member, _)| member == name);
        found.map(|(_, raw)| *raw).filter(|raw| raw.get() != "null")
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), raw)) = map.next_entry()? {
                    members.push((name, raw));
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// An object that is being read. What is wrong is noted with its path, and the reader goes on.
pub(super) struct Fields<'a, 'f> {
    /// Nothing: every field is absent.
    object: Option<Object<'a>>,
    path: String,
    faults: &'f mut Faults,
}

impl<'a, 'f> Fields<'a, 'f> {
    /// The fields of an object at a path.
    pub(super) fn of(object: Option<Object<'a>>, path: String, faults: &'f mut Faults) -> Self {
        Self {
            object,
            path,
            faults,
        }
    }

    /// A field that may be absent.
    pub(super) fn optional<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&'a RawValue) -> Result<T, Problem>,
    ) -> Option<T> {
        let raw = self.object.as_ref()?.get(name)?;
        read(raw).map_err(|problem| self.note(name, problem)).ok()
    }

    /// A field that must be there.
    pub(super) fn required<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&'a RawValue) -> Result<T, Problem>,
    ) -> Option<T> {
        if !self.has(name) {
            self.note(name, Problem::new(FaultCode::Required, "Must be given."));
        }
        self.optional(name, read)
    }

    /// Whether a field is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.object
            .as_ref()
            .is_some_and(|object| object.get(name).is_some())
    }

    /// An object inside this one. Absent, all its fields are.
    pub(super) fn section(&mut self, name: &str) -> Fields<'a, '_> {
        Fields {
            object: self.optional(name, object),
            path: self.path_of(name),
            faults: self.faults,
        }
    }

    /// Whether there is an object at all.
    pub(super) fn is_there(&self) -> bool {
        self.object.is_some()
    }

    fn note(&mut self, name: &str, problem: Problem) {
        self.faults.add(self.path_of(name), problem);
    }

    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }
}

fn object(raw: &RawValue) -> Result<Object<'_>, Problem> {
    Object::of(raw).ok_or_else(|| wrong_type("an object"))
}

/// A string. Browsers cut strings in the middle of a character and send the half they have left: it is replaced,
/// since a name is never refused for its content.
pub(super) fn text(raw: &RawValue) -> Result<String, Problem> {
    let read: Result<Lossy, _> = serde_json::from_str(raw.get());
    read.map(|text| text.0).map_err(|_| wrong_type("a string"))
}

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

/// A string that is read further.
pub(super) fn text_as<T>(
    read: impl FnOnce(&str) -> Result<T, Problem>,
) -> impl FnOnce(&RawValue) -> Result<T, Problem> {
    move |raw| read(&text(raw)?)
}

/// `true` or `false`.
pub(super) fn flag(raw: &RawValue) -> Result<bool, Problem> {
    serde_json::from_str(raw.get()).map_err(|_| wrong_type("true or false"))
}

/// The digits of a number, as they were sent.
pub(super) fn digits(raw: &RawValue) -> Result<&str, Problem> {
    let text = raw.get();
    let is_number = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    if is_number {
        Ok(text)
    } else {
        Err(wrong_type("a number"))
    }
}

/// A whole number, however it is written. One that does not fit 64 bits is the last that does.
pub(super) fn integer(raw: &RawValue) -> Result<i64, Problem> {
    let number = digits(raw).ok().and_then(whole);
    number.ok_or_else(|| wrong_type("a whole number"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    #[rstest]
    #[case::plain(r#""abc""#, Some("abc"))]
    #[case::escaped(r#""a\n\u00e9""#, Some("a\né"))]
    #[case::pair_of_surrogates(r#""\ud83d\ude00""#, Some("😀"))]
    #[case::half_a_character(r#""a\ud83d""#, Some("a\u{fffd}\u{fffd}\u{fffd}"))]
    #[case::number("5", None)]
    #[case::list_of_bytes("[97]", None)]
    #[case::object("{}", None)]
    fn texts(#[case] json: &str, #[case] expected: Option<&str>) {
        assert_eq!(text(raw(json)).ok().as_deref(), expected);
    }

    #[rstest]
    #[case::zero("0", Some(0))]
    #[case::negative("-5", Some(-5))]
    #[case::large("9223372036854775807", Some(i64::MAX))]
    #[case::too_large("99999999999999999999999", Some(i64::MAX))]
    #[case::too_small("-99999999999999999999999", Some(i64::MIN))]
    #[case::fraction("1.5", None)]
    #[case::float("1.0", Some(1))]
    #[case::exponent("1e3", Some(1_000))]
    #[case::text(r#""5""#, None)]
    #[case::flag("true", None)]
    fn integers(#[case] json: &str, #[case] expected: Option<i64>) {
        assert_eq!(integer(raw(json)).ok(), expected);
    }

    #[test]
    fn faults_carry_the_path_of_their_field() {
        let object = Object::of(raw(r#"{"screen": {"width": "x"}, "consent": 5}"#));
        let mut faults = Faults::new();
        let mut fields = Fields::of(object, String::new(), &mut faults);
        fields.section("screen").optional("width", digits);
        fields.section("consent").optional("tracking", text);
        fields.section("nothing").optional("more", text);
        fields.required("deviceId", text);
        let found: Vec<(&str, &str)> = faults
            .iter()
            .map(|fault| (fault.field.as_str(), fault.code.as_str()))
            .collect();
        let expected = [
            ("screen.width", "wrong_type"),
            ("consent", "wrong_type"),
            ("deviceId", "required"),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn nesting_costs_no_stack() {
        let deep = format!(r#"{{"a": {}{}}}"#, "[".repeat(200_000), "]".repeat(200_000));
        assert!(Object::of(raw(&deep)).unwrap().get("a").is_some());
    }

    proptest! {
        #[test]
        fn nothing_panics(json in "[\\[\\]{}\":,a-c0-9.e\\\\ud-]*") {
            if let Ok(raw) = serde_json::from_str::<&RawValue>(&json) {
                let _any = (Object::of(raw), text(raw), integer(raw), flag(raw), digits(raw));
            }
        }
    }
}
