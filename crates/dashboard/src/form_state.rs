//! A form's state: field values and validation errors. Fields have the same names as in the REST
//! API, so that validation errors appear next to their fields.

use std::collections::BTreeMap;
use tributary_domain::vocabulary::fault::{Fault, Faults};
use tributary_fields::Form;

/// Values and validation errors by field.
#[derive(Debug, Default)]
pub(crate) struct FormState {
    values: BTreeMap<String, String>,
    faults: Vec<Fault>,
}

impl FormState {
    /// Takes the values from a submitted form.
    pub(crate) fn from_form(form: &Form) -> Self {
        let mut values = BTreeMap::new();
        for (name, value) in form.fields() {
            values
                .entry(name.to_owned())
                .or_insert_with(|| value.to_owned());
        }
        Self {
            values,
            faults: Vec::new(),
        }
    }

    /// Sets a field's value.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.values.insert(name.to_owned(), value.into());
        self
    }

    /// Sets an optional field's value.
    #[must_use]
    pub(crate) fn with_optional(self, name: &str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Sets a checkbox.
    #[must_use]
    pub(crate) fn with_checkbox(self, name: &str, ticked: bool) -> Self {
        if ticked { self.with(name, "on") } else { self }
    }

    /// Sets the validation errors.
    #[must_use]
    pub(crate) fn with_faults(mut self, faults: Faults) -> Self {
        self.faults = faults.iter().cloned().collect();
        self
    }

    /// Returns a field's value.
    pub(crate) fn value(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    /// Returns whether a checkbox is ticked.
    pub(crate) fn is_ticked(&self, name: &str) -> bool {
        !self.value(name).is_empty()
    }

    /// Returns whether a field has this value.
    pub(crate) fn is(&self, name: &str, value: impl AsRef<str>) -> bool {
        self.value(name) == value.as_ref()
    }

    /// Returns the first error for a field or for a field nested in it.
    pub(crate) fn fault(&self, name: &str) -> Option<&str> {
        let within = |field: &str| {
            field
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']))
        };
        let found = self.faults.iter().find(|fault| within(&fault.field));
        found.map(|fault| fault.message.as_str())
    }

    /// Returns all validation errors.
    pub(crate) fn faults(&self) -> &[Fault] {
        &self.faults
    }
}
