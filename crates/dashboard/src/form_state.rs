//! A form's state: field values and validation errors. Fields have the same names as in the REST
//! API, so that validation errors appear next to their fields.

use axum::http::StatusCode;
use std::collections::BTreeMap;
use tributary_domain::vocabulary::fault::{Fault, Faults};
use tributary_fields::Form;

/// Values and validation errors by field.
#[derive(Debug, Clone, Default)]
pub(crate) struct FormState {
    values: BTreeMap<String, String>,
    faults: Vec<Fault>,
    /// The stored values, if another change was saved after the form was opened.
    saved: Option<BTreeMap<String, String>>,
}

/// Field with the version that the form was opened with.
pub(crate) const TAG: &str = "tag";

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
            ..Self::default()
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

    /// Shows the stored values beside the typed ones, because another change was saved meanwhile.
    #[must_use]
    pub(crate) fn with_saved(mut self, saved: Self) -> Self {
        self.saved = Some(saved.values);
        self
    }

    /// Returns whether another change was saved after the form was opened.
    pub(crate) const fn is_in_conflict(&self) -> bool {
        self.saved.is_some()
    }

    /// Returns a field's stored value if it differs from the typed one.
    pub(crate) fn saved(&self, name: &str) -> Option<&str> {
        let saved = self.saved.as_ref()?.get(name).map_or("", String::as_str);
        // Browsers send line breaks as CRLF.
        let is_same = self.value(name).replace("\r\n", "\n").trim() == saved.trim();
        (!is_same).then_some(saved)
    }

    /// Returns whether a field's stored value is this one.
    pub(crate) fn is_saved(&self, name: &str, value: impl AsRef<str>) -> bool {
        self.saved(name) == Some(value.as_ref())
    }

    /// Returns the version that the next submission expects: after a conflict the current one,
    /// because the user has seen both versions; otherwise the one that the form was opened with.
    pub(crate) fn tag(&self, current: String) -> String {
        if self.is_in_conflict() || self.value(TAG).is_empty() {
            current
        } else {
            self.value(TAG).to_owned()
        }
    }

    /// Returns whether a field has the first error of the form, and therefore gets the focus.
    pub(crate) fn is_first_fault(&self, name: &str) -> bool {
        let first = self.faults.first();
        first.is_some_and(|fault| is_within(&fault.field, name))
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
        let mut faults = self.faults.iter();
        let found = faults.find(|fault| is_within(&fault.field, name));
        found.map(|fault| fault.message.as_str())
    }

    /// Returns all validation errors.
    pub(crate) fn faults(&self) -> &[Fault] {
        &self.faults
    }
}

/// A submitted form that was not saved.
pub(crate) struct TypedForm {
    pub(crate) form: FormState,
    /// Whether another change was saved after the form was opened.
    pub(crate) is_conflict: bool,
}

impl TypedForm {
    /// Returns the status of the page that shows the form again.
    pub(crate) const fn status(&self) -> StatusCode {
        if self.is_conflict {
            StatusCode::CONFLICT
        } else {
            StatusCode::UNPROCESSABLE_ENTITY
        }
    }

    /// Returns the typed form, or the stored one if nothing was typed. After a conflict the form
    /// has both versions.
    pub(crate) fn or_stored(typed: Option<Self>, stored: FormState) -> FormState {
        match typed {
            Some(typed) if typed.is_conflict => typed.form.with_saved(stored),
            Some(typed) => typed.form,
            None => stored,
        }
    }
}

/// Returns whether a field is this one or nested in it.
fn is_within(field: &str, name: &str) -> bool {
    let rest = field.strip_prefix(name);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tributary_domain::vocabulary::fault::{FaultCode, Problem};

    fn typed() -> FormState {
        FormState::default()
            .with("name", "Mine")
            .with("lines", "a\r\nb")
            .with(TAG, "1")
    }

    #[test]
    fn a_conflict_shows_the_fields_that_differ() {
        let saved = FormState::default()
            .with("name", "Theirs")
            .with("lines", "a\nb");
        let form = typed().with_saved(saved);
        assert_eq!(form.saved("name"), Some("Theirs"));
        assert_eq!(form.saved("lines"), None);
        assert_eq!(form.tag("2".to_owned()), "2");
    }

    #[test]
    fn a_form_with_errors_keeps_the_version_it_was_opened_with() {
        let mut faults = Faults::new();
        for field in ["lines[1].text", "name"] {
            faults.add(field, Problem::new(FaultCode::NotAllowed, "Wrong."));
        }
        let form = typed().with_faults(faults);
        assert_eq!(form.tag("2".to_owned()), "1");
        assert!(form.is_first_fault("lines") && !form.is_first_fault("name"));
        assert_eq!(FormState::default().tag("2".to_owned()), "2");
    }
}
