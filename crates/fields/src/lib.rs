//! Reads request bodies and forms field by field, collects every fault, and describes the bodies.
//!
//! A derived deserializer stops at the first fault. Here a reader requests each field by name, with
//! the [`FieldKind`] that reads and describes it. A fault is recorded with the field's path, and
//! reading continues.
//!
//! There are two modes. In strict mode, [`Fields::finish`] reports every unknown field with the
//! list of known fields, and every duplicate field. In lenient mode, unknown fields are ignored,
//! null means absent, and the last of several fields with the same name wins, as in browsers.
//!
//! The same functions read a [`Form`], so a dashboard page and an endpoint that change the same
//! object cannot disagree. A form field's name is its path with dots, and every value is text. See
//! [`Form`] for how empty fields are read.
//!
//! [`describe`] runs the same reader without a body to describe the body for `openapi.yaml`.
//!
//! A PATCH body is compared with the document that GET returns: a field that still has its current
//! value is treated as absent. So a client may send back the whole document with some fields
//! changed.

pub mod app;
pub mod cost_csv;
pub mod cost_source;
pub mod integration;
pub mod json;
pub mod key;
pub mod link;
pub mod link_csv;
pub mod notice;

mod describe;
mod form;
mod kind;
mod nested;
mod value;

pub use describe::describe;
pub use form::Form;
pub use kind::{
    FieldKind, amount, any_object, any_text_object, choice, flag, integer, integer_in, list_as,
    number_as, object, text, text_as, text_list, text_map, value_as, wrong_type,
};
pub use nested::{ObjectList, objects};
pub use value::InputValue;

use crate::json::JsonNode;
use describe::{DeclaredFields, Requirement};
use kind::{ValueSchema, ValueType};
use std::cell::RefCell;
use std::collections::BTreeSet;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::field_input::FieldInput;
use value::ObjectMembers;

/// The fields of an object.
pub struct Fields<'a> {
    state: State<'a>,
    path: String,
    requested: Vec<&'static str>,
    ignored: Vec<&'static str>,
    /// The object as GET returns it now; `None` unless the body is a PATCH.
    current: Option<&'a JsonNode>,
    is_lenient: bool,
    faults: &'a mut Faults,
}

/// Source of the fields.
enum State<'a> {
    /// There is no object: every field is absent.
    Absent,
    /// The object is `null`: every field is reset to its default.
    Null,
    /// A JSON object.
    Members(ObjectMembers<'a>),
    /// A form. Its field names start with the object's path.
    Form(&'a Form),
    /// There is no object: the reader declares its fields for the API description.
    Described(&'a RefCell<DeclaredFields>),
}

impl<'a> Fields<'a> {
    fn new(state: State<'a>, path: String, faults: &'a mut Faults) -> Self {
        Self {
            state,
            path,
            requested: Vec::new(),
            ignored: Vec::new(),
            current: None,
            is_lenient: false,
            faults,
        }
    }

    /// Reads a body.
    pub fn of_body(body: &'a JsonNode, faults: &'a mut Faults) -> Self {
        let state = object_state(InputValue::Tree(body), "body", faults);
        Self::new(state, String::new(), faults)
    }

    /// Reads a PATCH body and compares it with the current document, if there is one.
    pub fn of_change(
        body: &'a JsonNode,
        current: Option<&'a JsonNode>,
        faults: &'a mut Faults,
    ) -> Self {
        Self {
            current,
            ..Self::of_body(body, faults)
        }
    }

    /// Reads a submitted form.
    pub fn of_form(form: &'a Form, faults: &'a mut Faults) -> Self {
        Self::new(State::Form(form), String::new(), faults)
    }

    /// Reads an object leniently.
    pub fn lenient(value: InputValue<'a>, faults: &'a mut Faults) -> Self {
        Self {
            is_lenient: true,
            ..Self::new(object_state(value, "body", faults), String::new(), faults)
        }
    }

    /// Collects the declared fields for the API description, without a body.
    fn for_description(declared: &'a RefCell<DeclaredFields>, faults: &'a mut Faults) -> Self {
        Self::new(State::Described(declared), String::new(), faults)
    }

    /// Returns the path of a field in this object.
    fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    fn declared(&self) -> Option<&'a RefCell<DeclaredFields>> {
        match self.state {
            State::Described(declared) => Some(declared),
            State::Absent | State::Null | State::Members(_) | State::Form(_) => None,
        }
    }

    /// Finds a field, or declares it for the API description.
    fn find(&mut self, name: &'static str, shape: ValueSchema, need: Requirement) -> Lookup<'a> {
        self.requested.push(name);
        let found = self.peek(name, &shape);
        if let Some(declared) = self.declared() {
            declared.borrow_mut().add(self.path_of(name), shape, need);
        }
        found
    }

    fn peek(&self, name: &'static str, shape: &ValueSchema) -> Lookup<'a> {
        match &self.state {
            State::Form(form) => form.find(&self.path_of(name), shape),
            State::Absent | State::Described(_) => Lookup::Absent,
            State::Null => Lookup::Null,
            State::Members(members) if self.is_lenient => {
                let found = members.last(name).filter(|value| !value.is_null());
                found.map_or(Lookup::Absent, Lookup::Value)
            }
            State::Members(members) => match members.first(name) {
                None => Lookup::Absent,
                Some(value) if self.is_current(name, value) => Lookup::Absent,
                Some(value) if value.is_null() => Lookup::Null,
                Some(value) => Lookup::Value(value),
            },
        }
    }

    fn current_value(&self, name: &str) -> Option<&'a JsonNode> {
        self.current?.member(name)
    }

    fn is_current(&self, name: &str, value: InputValue<'_>) -> bool {
        let (Some(current), InputValue::Tree(node)) = (self.current_value(name), value) else {
            return false;
        };
        current.same_value(node)
    }

    /// Ignores a field that GET returns and that the server itself changes, so a PATCH body may
    /// contain any value for it.
    pub fn ignore(&mut self, name: &'static str) {
        self.ignored.push(name);
    }

    fn add_fault(&mut self, name: &str, problem: Problem) {
        let path = self.path_of(name);
        self.faults.add(path, problem);
    }

    /// Returns the problem for a missing field, worded for the API or for a form.
    fn missing(&self) -> Problem {
        let message = match self.state {
            State::Form(_) => "Must not be empty.",
            _ => "Required.",
        };
        Problem::new(FaultCode::Required, message)
    }

    /// Reads a required field.
    pub fn required<T>(
        &mut self,
        name: &'static str,
        kind: FieldKind<impl FnOnce(InputValue<'a>) -> Result<T, Problem>>,
    ) -> Option<T> {
        let read = match self.find(name, kind.shape, Requirement::Required) {
            Lookup::Value(value) => (kind.read)(value),
            Lookup::Null | Lookup::Absent => Err(self.missing()),
        };
        read.map_err(|problem| self.add_fault(name, problem)).ok()
    }

    /// Reads a field that can be set but not reset, because it has no default.
    pub fn settable<T>(
        &mut self,
        name: &'static str,
        kind: FieldKind<impl FnOnce(InputValue<'a>) -> Result<T, Problem>>,
    ) -> Option<T> {
        match self.find(name, kind.shape, Requirement::Optional) {
            Lookup::Absent => None,
            Lookup::Null if matches!(self.state, State::Form(_)) => {
                self.add_fault(name, self.missing());
                None
            }
            Lookup::Null => {
                let message = "Must not be null, because it has no default.";
                self.add_fault(name, Problem::new(FaultCode::Required, message));
                None
            }
            Lookup::Value(value) => {
                let read = (kind.read)(value);
                read.map_err(|problem| self.add_fault(name, problem)).ok()
            }
        }
    }

    /// Reads a field that may be absent, null or set.
    pub fn change<T>(
        &mut self,
        name: &'static str,
        kind: FieldKind<impl FnOnce(InputValue<'a>) -> Result<T, Problem>>,
    ) -> Change<T> {
        match self.find(name, kind.shape, Requirement::Nullable) {
            Lookup::Absent => Change::Keep,
            Lookup::Null => Change::Reset,
            Lookup::Value(value) => match (kind.read)(value) {
                Ok(value) => Change::Set(value),
                Err(problem) => {
                    self.add_fault(name, problem);
                    Change::Keep
                }
            },
        }
    }

    /// Reads an optional field; null means absent.
    pub fn input<T>(
        &mut self,
        name: &'static str,
        kind: FieldKind<impl FnOnce(InputValue<'a>) -> Result<T, Problem>>,
    ) -> FieldInput<T> {
        self.input_as(name, kind, Requirement::Nullable)
    }

    /// Reads an optional field; an invalid value is reported and then treated as absent.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        kind: FieldKind<impl FnOnce(InputValue<'a>) -> Result<T, Problem>>,
    ) -> Option<T> {
        self.input(name, kind).value()
    }

    /// Like [`Self::input`], for a field that a domain rule requires; the API description marks the
    /// field as required.
    pub fn required_input<T>(
        &mut self,
        name: &'static str,
        kind: FieldKind<impl FnOnce(InputValue<'a>) -> Result<T, Problem>>,
    ) -> FieldInput<T> {
        self.input_as(name, kind, Requirement::Required)
    }

    fn input_as<T>(
        &mut self,
        name: &'static str,
        kind: FieldKind<impl FnOnce(InputValue<'a>) -> Result<T, Problem>>,
        need: Requirement,
    ) -> FieldInput<T> {
        match self.find(name, kind.shape, need) {
            Lookup::Absent | Lookup::Null => FieldInput::Absent,
            Lookup::Value(value) => match (kind.read)(value) {
                Ok(value) => FieldInput::Value(value),
                Err(problem) => {
                    self.add_fault(name, problem);
                    FieldInput::Invalid
                }
            },
        }
    }

    /// Returns whether the object is present.
    pub const fn is_present(&self) -> bool {
        matches!(self.state, State::Members(_) | State::Form(_))
    }

    /// Returns whether a field is present and null.
    pub fn is_null(&self, name: &'static str) -> bool {
        matches!(self.peek(name, &ValueSchema::default()), Lookup::Null)
    }

    /// Runs a domain rule that may add faults.
    pub fn check<T>(&mut self, rule: impl FnOnce(&mut Faults) -> T) -> T {
        rule(self.faults)
    }

    /// Reads fields without reporting their faults. Invalid values are treated as absent.
    pub fn ignoring_faults<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::take(self.faults);
        let value = read(self);
        *self.faults = before;
        value
    }

    /// Reads a nested object. If the object is absent or null, so are all its fields.
    pub fn section(&mut self, name: &'static str) -> Fields<'_> {
        self.section_of(name, ValueSchema::of(ValueType::Object))
    }

    /// Like [`Self::section`], with a description. If the object accepts any fields, they are not
    /// described.
    pub fn section_as<R>(&mut self, name: &'static str, kind: FieldKind<R>) -> Fields<'_> {
        self.section_of(name, kind.shape)
    }

    fn section_of(&mut self, name: &'static str, shape: ValueSchema) -> Fields<'_> {
        let path = self.path_of(name);
        let is_open = shape.of != ValueType::Object;
        let found = self.find(name, shape, Requirement::Nullable);
        let state = match (&self.state, found) {
            (State::Described(declared), _) if !is_open => State::Described(declared),
            (State::Form(form), _) => State::Form(form),
            (_, Lookup::Absent) => State::Absent,
            (_, Lookup::Null) => State::Null,
            (_, Lookup::Value(value)) => object_state(value, &path, self.faults),
        };
        Fields {
            current: self.current_value(name),
            is_lenient: self.is_lenient,
            ..Fields::new(state, path, self.faults)
        }
    }

    /// Reports unknown fields, read-only fields and duplicates. A form may have additional fields,
    /// such as its CSRF token and buttons.
    pub fn finish(self) {
        let State::Members(members) = &self.state else {
            return;
        };
        if self.is_lenient {
            return;
        }
        let mut seen = BTreeSet::new();
        for (name, value) in members.each() {
            let is_known = self.requested.contains(&name);
            let is_ignored = self.ignored.contains(&name) || self.is_current(name, value);
            let problem = if !is_known && is_ignored {
                continue;
            } else if !is_known && self.current_value(name).is_some() {
                let message = "Read-only field. Omit it or send its current value.";
                Problem::new(FaultCode::NotAllowed, message)
            } else if !is_known {
                let message = if self.requested.is_empty() {
                    "Unknown field. This object has no fields.".to_owned()
                } else {
                    format!(
                        "Unknown field. Known fields: {}.",
                        self.requested.join(", ")
                    )
                };
                Problem::new(FaultCode::UnknownField, message)
            } else if !seen.insert(name) {
                let message = "Duplicate field.";
                Problem::new(FaultCode::DuplicateField, message)
            } else {
                continue;
            };
            if self.faults.is_full() {
                break;
            }
            self.faults.add(self.path_of(name), problem);
        }
    }
}

enum Lookup<'a> {
    Absent,
    Null,
    Value(InputValue<'a>),
}

fn object_state<'a>(value: InputValue<'a>, path: &str, faults: &mut Faults) -> State<'a> {
    if let Some(members) = value.members() {
        State::Members(members)
    } else {
        faults.add(path, wrong_type("an object"));
        State::Absent
    }
}

#[cfg(test)]
mod tests;
