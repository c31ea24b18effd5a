//! A form as a page shows it: what stands in its fields, and what is wrong with them. Fields are named as the REST
//! interface names them, so the faults that the rules find have their places.

use std::collections::BTreeMap;
use tributary_domain::vocabulary::fault::{Fault, Faults};
use tributary_fields::Form;

/// Values and faults, by field.
#[derive(Debug, Default)]
pub(crate) struct FormState {
    values: BTreeMap<String, String>,
    faults: Vec<Fault>,
}

impl FormState {
    /// What was typed.
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

    /// With what stands in a field.
    #[must_use]
    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.values.insert(name.to_owned(), value.into());
        self
    }

    /// With what stands in a field that may be empty.
    #[must_use]
    pub(crate) fn with_optional(self, name: &str, value: Option<impl Into<String>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// With a box that is ticked or not.
    #[must_use]
    pub(crate) fn with_checkbox(self, name: &str, ticked: bool) -> Self {
        if ticked { self.with(name, "on") } else { self }
    }

    /// With what is wrong.
    #[must_use]
    pub(crate) fn with_faults(mut self, faults: Faults) -> Self {
        self.faults = faults.iter().cloned().collect();
        self
    }

    /// What stands in a field.
    pub(crate) fn value(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    /// Whether a box is ticked.
    pub(crate) fn is_ticked(&self, name: &str) -> bool {
        !self.value(name).is_empty()
    }

    /// Whether a choice is made.
    pub(crate) fn is(&self, name: &str, value: impl AsRef<str>) -> bool {
        self.value(name) == value.as_ref()
    }

    /// What is wrong with a field, or with one in it.
    pub(crate) fn fault(&self, name: &str) -> Option<&str> {
        let within = |field: &str| {
            field
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']))
        };
        let found = self.faults.iter().find(|fault| within(&fault.field));
        found.map(|fault| fault.message.as_str())
    }

    /// Everything that is wrong.
    pub(crate) fn faults(&self) -> &[Fault] {
        &self.faults
    }
}
