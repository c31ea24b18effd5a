//! Submitted forms (`application/x-www-form-urlencoded`): flat field names, and text values only.

use crate::kind::{ValueSchema, ValueType};
use crate::value::InputValue;
use crate::{Fields, Lookup};
use tributary_domain::vocabulary::fault::Faults;
use url::form_urlencoded;

/// A form. It may contain a password, so it does not implement `Debug`.
///
/// | Form input | Read as |
/// |---|---|
/// | `ios.bundleId` | the field `bundleId` in the object `ios` |
/// | an empty field | null: the field is reset to its default |
/// | a missing field | absent |
/// | a checked checkbox | true |
/// | an unchecked checkbox | false; browsers omit unchecked checkboxes |
/// | lines, or comma-separated values | a list of strings |
/// | lines of `key = value` | an object of strings |
/// | an empty secret | absent, or null if the checkbox `<name>.remove` is checked |
pub struct Form(Vec<(String, String)>);

/// Maximum number of fields: enough for a few hundred conversion values with all conditions.
/// Without this limit, a one-megabyte body of `a&a&a…` would take fifty megabytes of memory before
/// sign-in.
const FIELDS_MAX: usize = 20_000;

impl Form {
    /// Decodes a body; `None` if it has too many fields. Bytes that are not UTF-8 are replaced.
    pub fn parse(body: &[u8]) -> Option<Self> {
        let fields = body.split(|byte| *byte == b'&').take(FIELDS_MAX + 1);
        let fits = fields.count() <= FIELDS_MAX;
        fits.then(|| Self(form_urlencoded::parse(body).into_owned().collect()))
    }

    /// Builds a form from names and values, for text that is read like a form.
    pub const fn of(fields: Vec<(String, String)>) -> Self {
        Self(fields)
    }

    /// Reads the fields, collecting every fault.
    pub fn read<T>(&self, read: impl FnOnce(&mut Fields<'_>) -> T) -> (T, Faults) {
        let mut faults = Faults::new();
        let value = read(&mut Fields::of_form(self, &mut faults));
        (value, faults)
    }

    /// Returns the first field with this name, or an empty string if the field is absent.
    pub fn field(&self, name: &str) -> String {
        self.first(name).unwrap_or_default().to_owned()
    }

    /// Returns whether a checkbox is checked.
    pub fn is_checked(&self, name: &str) -> bool {
        self.first(name).is_some_and(|value| !value.is_empty())
    }

    /// Returns every field, in order.
    pub fn fields(&self) -> impl DoubleEndedIterator<Item = (&str, &str)> {
        let fields = self.0.iter();
        fields.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    fn first(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Finds the field at a path. Whether an empty or missing field means null, absent or false
    /// depends on the field's type.
    pub(crate) fn find(&self, path: &str, shape: &ValueSchema) -> Lookup<'_> {
        let text = self.first(path).map(str::trim);
        match text {
            _ if shape.of == ValueType::Flag => {
                Lookup::Value(InputValue::Form(text.unwrap_or_default()))
            }
            Some(text) if !text.is_empty() => Lookup::Value(InputValue::Form(text)),
            _ if shape.write_only && self.is_checked(&format!("{path}.remove")) => Lookup::Null,
            Some(_) if !shape.write_only && !shape.may_be_blank => Lookup::Null,
            Some(_) | None => Lookup::Absent,
        }
    }
}

#[cfg(test)]
mod tests;
