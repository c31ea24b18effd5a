//! The one reader of bodies and forms: it reads them field by field, collecting every fault, and describes them.
//!
//! A derived deserializer stops at the first fault. Here each field is asked for by name, with the [`Kind`] that
//! says how it is read and described; what is wrong is noted with its path, and the reader goes on.
//!
//! A body is read in one of two modes. Strict: [`Fields::finish`] notes every field that the reader did not ask for and
//! says which ones there are, and a field that is sent twice is a fault. Lenient: unknown fields are ignored, null is the
//! same as absent, and the last of two equal names counts, as in browsers.
//!
//! A [`Form`] is read by the same functions, so a page and an endpoint that change the same thing cannot disagree. Its
//! names have dots for the objects in between, and every value is text; see [`Form`] for what an empty field means.
//!
//! Run without a body, by [`describe`], the same reader declares the fields of the body for `openapi.yaml`.
//!
//! The body of a PATCH is compared with the document that GET answers: a field that carries its current value is
//! read as absent. A client may therefore send back the whole document with some fields changed.

pub mod app;
pub mod integration;
pub mod json;
pub mod link;

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
use kind::{Shape, Type};
use std::cell::RefCell;
use std::collections::BTreeSet;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::field_input::FieldInput;
use value::ObjectMembers;

/// An object that is being read.
pub struct Fields<'a> {
    state: State<'a>,
    path: String,
    known: Vec<&'static str>,
    ignored: Vec<&'static str>,
    /// The object as GET answers it now; nothing outside a PATCH.
    current: Option<&'a JsonNode>,
    is_lenient: bool,
    faults: &'a mut Faults,
}

/// What is in the place of the object.
enum State<'a> {
    /// Nothing: every field in it is absent.
    Absent,
    /// `null`: every field in it goes back to its default.
    Null,
    /// The object.
    Members(ObjectMembers<'a>),
    /// A form, whose names begin with the path of the object.
    Form(&'a Form),
    /// Nothing, and the fields are declared.
    Described(&'a RefCell<DeclaredFields>),
}

impl<'a> Fields<'a> {
    fn new(state: State<'a>, path: String, faults: &'a mut Faults) -> Self {
        Self {
            state,
            path,
            known: Vec::new(),
            ignored: Vec::new(),
            current: None,
            is_lenient: false,
            faults,
        }
    }

    /// The body itself.
    pub fn of_body(body: &'a JsonNode, faults: &'a mut Faults) -> Self {
        let state = object_state(InputValue::Tree(body), "body", faults);
        Self::new(state, String::new(), faults)
    }

    /// The body of a PATCH, compared with the document that it changes, if there is one.
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

    /// A submitted form.
    pub fn of_form(form: &'a Form, faults: &'a mut Faults) -> Self {
        Self::new(State::Form(form), String::new(), faults)
    }

    /// An object that is read leniently.
    pub fn lenient(value: InputValue<'a>, faults: &'a mut Faults) -> Self {
        Self {
            is_lenient: true,
            ..Self::new(object_state(value, "body", faults), String::new(), faults)
        }
    }

    /// No body, for the description.
    fn for_description(declared: &'a RefCell<DeclaredFields>, faults: &'a mut Faults) -> Self {
        Self::new(State::Described(declared), String::new(), faults)
    }

    /// The path of a field of this object.
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

    /// Finds a field, or declares it.
    fn find(&mut self, name: &'static str, shape: Shape, need: Requirement) -> Lookup<'a> {
        self.known.push(name);
        let found = self.peek(name, &shape);
        if let Some(declared) = self.declared() {
            declared.borrow_mut().add(self.path_of(name), shape, need);
        }
        found
    }

    fn peek(&self, name: &'static str, shape: &Shape) -> Lookup<'a> {
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

    /// A field that GET answers, that changes by itself and that a PATCH may therefore carry with any value.
    pub fn ignore(&mut self, name: &'static str) {
        self.ignored.push(name);
    }

    fn add_fault(&mut self, name: &str, problem: Problem) {
        let path = self.path_of(name);
        self.faults.add(path, problem);
    }

    /// Says that a field must be there, in words for a program or for a person at a form.
    fn missing(&self) -> Problem {
        let message = match self.state {
            State::Form(_) => "Must not be empty.",
            _ => "Must be given.",
        };
        Problem::new(FaultCode::Required, message)
    }

    /// A field that must be there.
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

    /// A field that can be set and not be reset: it has no default to go back to.
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
                let message = "Has no default to go back to, so it cannot be null.";
                self.add_fault(name, Problem::new(FaultCode::Required, message));
                None
            }
            Lookup::Value(value) => {
                let read = (kind.read)(value);
                read.map_err(|problem| self.add_fault(name, problem)).ok()
            }
        }
    }

    /// A field that may be absent, null or given.
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

    /// A field that may be absent, where null is the same.
    pub fn input<T>(
        &mut self,
        name: &'static str,
        kind: FieldKind<impl FnOnce(InputValue<'a>) -> Result<T, Problem>>,
    ) -> FieldInput<T> {
        self.given_as(name, kind, Requirement::Nullable)
    }

    /// A field that may be absent, where a fault is the same but for being noted.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        kind: FieldKind<impl FnOnce(InputValue<'a>) -> Result<T, Problem>>,
    ) -> Option<T> {
        self.input(name, kind).value()
    }

    /// As [`Self::given`], for a field that a rule of the domain requires and the description therefore does, too.
    pub fn required_input<T>(
        &mut self,
        name: &'static str,
        kind: FieldKind<impl FnOnce(InputValue<'a>) -> Result<T, Problem>>,
    ) -> FieldInput<T> {
        self.given_as(name, kind, Requirement::Required)
    }

    fn given_as<T>(
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

    /// Whether there is an object at all.
    pub const fn is_present(&self) -> bool {
        matches!(self.state, State::Members(_) | State::Form(_))
    }

    /// Whether a field is there and null.
    pub fn is_null(&self, name: &'static str) -> bool {
        matches!(self.peek(name, &Shape::default()), Lookup::Null)
    }

    /// Lets a rule of the domain note faults of its own.
    pub fn check<T>(&mut self, rule: impl FnOnce(&mut Faults) -> T) -> T {
        rule(self.faults)
    }

    /// An object inside this one. Absent or null, all its fields are.
    pub fn section(&mut self, name: &'static str) -> Fields<'_> {
        self.section_of(name, Shape::of(Type::Object))
    }

    /// As [`Self::section`], with what the description says about it. It names no fields of one that takes any.
    pub fn section_as<R>(&mut self, name: &'static str, kind: FieldKind<R>) -> Fields<'_> {
        self.section_of(name, kind.shape)
    }

    fn section_of(&mut self, name: &'static str, shape: Shape) -> Fields<'_> {
        let path = self.path_of(name);
        let is_open = shape.of != Type::Object;
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

    /// Notes the fields that do not exist, those that cannot be changed, and duplicates. A form may have others: its
    /// token, its buttons.
    pub fn finish(self) {
        let State::Members(members) = &self.state else {
            return;
        };
        if self.is_lenient {
            return;
        }
        let mut seen = BTreeSet::new();
        for (name, value) in members.each() {
            let is_known = self.known.contains(&name);
            let is_ignored = self.ignored.contains(&name) || self.is_current(name, value);
            let problem = if !is_known && is_ignored {
                continue;
            } else if !is_known && self.current_value(name).is_some() {
                let message =
                    "PATCH cannot change this field. Leave it out, or send its current value.";
                Problem::new(FaultCode::NotAllowed, message)
            } else if !is_known {
                let message = if self.known.is_empty() {
                    "No such field; this object takes none.".to_owned()
                } else {
                    format!(
                        "No such field. This object takes: {}.",
                        self.known.join(", ")
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
