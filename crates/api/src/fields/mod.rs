//! The one reader of request bodies: it reads them field by field, collecting every fault, and describes them.
//!
//! A derived deserializer stops at the first fault. Here each field is asked for by name, with the [`Kind`] that
//! says how it is read and described; what is wrong is noted with its path, and the reader goes on.
//!
//! A body is read in one of two modes. Strict: [`Fields::finish`] notes every field that the reader did not ask for and
//! says which ones there are, and a field that is sent twice is a fault. Lenient: unknown fields are ignored, null is the
//! same as absent, and the last of two equal names counts, as in browsers.
//!
//! Run without a body, by [`describe`], the same reader declares the fields of the body for `openapi.yaml`.
//!
//! The body of a PATCH is compared with the document that GET answers: a field that carries its current value is
//! read as absent. A client may therefore send back the whole document with some fields changed.

mod current;
mod describe;
mod kind;
mod value;

pub(crate) use current::Current;
pub(crate) use describe::{describe, described_body};
pub(crate) use kind::{
    Kind, amount, any_object, any_texts, choice, flag, integer, integer_in, list_as, number_as,
    object, text, text_as, text_map, texts, value_as, wrong_type,
};
pub(crate) use value::Value;

use crate::json::Node;
use describe::{Declared, Need};
use kind::{Shape, Type};
use std::cell::RefCell;
use std::collections::BTreeSet;
use tributary_domain::vocabulary::change::Change;
use tributary_domain::vocabulary::fault::{FaultCode, Faults, Problem};
use tributary_domain::vocabulary::given::Given;
use value::Members;

/// An object that is being read.
pub(crate) struct Fields<'a> {
    state: State<'a>,
    path: String,
    known: Vec<&'static str>,
    ignored: Vec<&'static str>,
    /// The object as GET answers it now; nothing outside a PATCH.
    current: Option<&'a Node>,
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
    Members(Members<'a>),
    /// Nothing, and the fields are declared.
    Described(&'a RefCell<Declared>),
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
    pub(crate) fn of_body(body: &'a Node, faults: &'a mut Faults) -> Self {
        let state = object_state(Value::Tree(body), "body", faults);
        Self::new(state, String::new(), faults)
    }

    /// The body of a PATCH, compared with the document that it changes.
    pub(crate) fn of_change(body: &'a Node, current: &'a Current, faults: &'a mut Faults) -> Self {
        Self {
            current: current.document(),
            ..Self::of_body(body, faults)
        }
    }

    /// An object that is read leniently.
    pub(crate) fn lenient(value: Value<'a>, faults: &'a mut Faults) -> Self {
        Self {
            is_lenient: true,
            ..Self::new(object_state(value, "body", faults), String::new(), faults)
        }
    }

    /// No body, for the description.
    fn of_nothing(declared: &'a RefCell<Declared>, faults: &'a mut Faults) -> Self {
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

    fn declared(&self) -> Option<&'a RefCell<Declared>> {
        match self.state {
            State::Described(declared) => Some(declared),
            State::Absent | State::Null | State::Members(_) => None,
        }
    }

    /// Finds a field, or declares it.
    fn find(&mut self, name: &'static str, shape: Shape, need: Need) -> Found<'a> {
        self.known.push(name);
        if let Some(declared) = self.declared() {
            declared.borrow_mut().add(self.path_of(name), shape, need);
        }
        self.peek(name)
    }

    fn peek(&self, name: &'static str) -> Found<'a> {
        match &self.state {
            State::Absent | State::Described(_) => Found::Absent,
            State::Null => Found::Null,
            State::Members(members) if self.is_lenient => {
                let found = members.last(name).filter(|value| !value.is_null());
                found.map_or(Found::Absent, Found::Value)
            }
            State::Members(members) => match members.first(name) {
                None => Found::Absent,
                Some(value) if self.is_current(name, value) => Found::Absent,
                Some(value) if value.is_null() => Found::Null,
                Some(value) => Found::Value(value),
            },
        }
    }

    fn current_value(&self, name: &str) -> Option<&'a Node> {
        self.current?.member(name)
    }

    fn is_current(&self, name: &str, value: Value<'_>) -> bool {
        let (Some(current), Value::Tree(node)) = (self.current_value(name), value) else {
            return false;
        };
        current.same_value(node)
    }

    /// A field that GET answers, that changes by itself and that a PATCH may therefore carry with any value.
    pub(crate) fn ignore(&mut self, name: &'static str) {
        self.ignored.push(name);
    }

    fn note(&mut self, name: &str, problem: Problem) {
        let path = self.path_of(name);
        self.faults.add(path, problem);
    }

    /// A field that must be there.
    pub(crate) fn required<T>(
        &mut self,
        name: &'static str,
        kind: Kind<impl FnOnce(Value<'a>) -> Result<T, Problem>>,
    ) -> Option<T> {
        let read = match self.find(name, kind.shape, Need::Required) {
            Found::Value(value) => (kind.read)(value),
            Found::Null | Found::Absent => Err(required()),
        };
        read.map_err(|problem| self.note(name, problem)).ok()
    }

    /// A field that can be set and not be reset: it has no default to go back to.
    pub(crate) fn settable<T>(
        &mut self,
        name: &'static str,
        kind: Kind<impl FnOnce(Value<'a>) -> Result<T, Problem>>,
    ) -> Option<T> {
        match self.find(name, kind.shape, Need::Optional) {
            Found::Absent => None,
            Found::Null => {
                let message = "Has no default to go back to, so it cannot be null.";
                self.note(name, Problem::new(FaultCode::Required, message));
                None
            }
            Found::Value(value) => {
                let read = (kind.read)(value);
                read.map_err(|problem| self.note(name, problem)).ok()
            }
        }
    }

    /// A field that may be absent, null or given.
    pub(crate) fn change<T>(
        &mut self,
        name: &'static str,
        kind: Kind<impl FnOnce(Value<'a>) -> Result<T, Problem>>,
    ) -> Change<T> {
        match self.find(name, kind.shape, Need::Nullable) {
            Found::Absent => Change::Keep,
            Found::Null => Change::Reset,
            Found::Value(value) => match (kind.read)(value) {
                Ok(value) => Change::Set(value),
                Err(problem) => {
                    self.note(name, problem);
                    Change::Keep
                }
            },
        }
    }

    /// A field that may be absent, where null is the same.
    pub(crate) fn given<T>(
        &mut self,
        name: &'static str,
        kind: Kind<impl FnOnce(Value<'a>) -> Result<T, Problem>>,
    ) -> Given<T> {
        self.given_as(name, kind, Need::Nullable)
    }

    /// A field that may be absent, where a fault is the same but for being noted.
    pub(crate) fn optional<T>(
        &mut self,
        name: &'static str,
        kind: Kind<impl FnOnce(Value<'a>) -> Result<T, Problem>>,
    ) -> Option<T> {
        self.given(name, kind).value()
    }

    /// As [`Self::given`], for a field that a rule of the domain requires and the description therefore does, too.
    pub(crate) fn expected<T>(
        &mut self,
        name: &'static str,
        kind: Kind<impl FnOnce(Value<'a>) -> Result<T, Problem>>,
    ) -> Given<T> {
        self.given_as(name, kind, Need::Required)
    }

    fn given_as<T>(
        &mut self,
        name: &'static str,
        kind: Kind<impl FnOnce(Value<'a>) -> Result<T, Problem>>,
        need: Need,
    ) -> Given<T> {
        match self.find(name, kind.shape, need) {
            Found::Absent | Found::Null => Given::Absent,
            Found::Value(value) => match (kind.read)(value) {
                Ok(value) => Given::Value(value),
                Err(problem) => {
                    self.note(name, problem);
                    Given::Faulty
                }
            },
        }
    }

    /// A list of objects, each read with its path. An item that is null is absent.
    pub(crate) fn items<T>(
        &mut self,
        name: &'static str,
        list: Items,
        mut read: impl FnMut(&mut Fields<'_>) -> T,
    ) -> Given<Vec<Given<T>>> {
        let (path, need) = (self.path_of(name), list.need);
        let found = self.find(name, list.shape, need);
        self.declare_items(name, &mut read);
        let value = match found {
            Found::Absent | Found::Null => return Given::Absent,
            Found::Value(value) => value,
        };
        let Some(items) = value.items() else {
            self.note(name, wrong_type("a list"));
            return Given::Faulty;
        };
        let item = |(index, value): (usize, Value<'a>)| {
            let path = format!("{path}[{index}]");
            if value.is_null() && list.takes_null {
                Given::Absent
            } else if let Some(members) = value.members() {
                let mut fields = Fields::new(State::Members(members), path, self.faults);
                let item = read(&mut fields);
                fields.finish();
                Given::Value(item)
            } else {
                self.faults.add(path, wrong_type(list.expected));
                Given::Faulty
            }
        };
        Given::Value(items.into_iter().enumerate().map(item).collect())
    }

    /// An object whose fields the domain checks together.
    pub(crate) fn object<T>(
        &mut self,
        name: &'static str,
        about: &'static str,
        read: impl FnOnce(&mut Fields<'_>) -> T,
    ) -> Given<T> {
        let path = self.path_of(name);
        let shape = Shape {
            about,
            ..Shape::of(Type::Object)
        };
        let found = self.find(name, shape, Need::Nullable);
        let state = match (self.declared(), found) {
            (Some(declared), _) => State::Described(declared),
            (None, Found::Absent | Found::Null) => return Given::Absent,
            (None, Found::Value(value)) => {
                let Some(members) = value.members() else {
                    self.note(name, wrong_type("an object"));
                    return Given::Faulty;
                };
                State::Members(members)
            }
        };
        let mut fields = Fields::new(state, path, self.faults);
        let value = read(&mut fields);
        fields.finish();
        Given::Value(value)
    }

    /// Declares the fields of the items of a list that [`list_as`] reads.
    pub(crate) fn declare_items<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Fields<'_>) -> T,
    ) {
        if let Some(declared) = self.declared() {
            let path = format!("{}[]", self.path_of(name));
            read(&mut Fields::new(
                State::Described(declared),
                path,
                self.faults,
            ));
        }
    }

    /// Whether there is an object at all.
    pub(crate) const fn is_there(&self) -> bool {
        matches!(self.state, State::Members(_))
    }

    /// Whether a field is there and null.
    pub(crate) fn is_null(&self, name: &'static str) -> bool {
        matches!(self.peek(name), Found::Null)
    }

    /// Lets a rule of the domain note faults of its own.
    pub(crate) fn check<T>(&mut self, rule: impl FnOnce(&mut Faults) -> T) -> T {
        rule(self.faults)
    }

    /// An object inside this one. Absent or null, all its fields are.
    pub(crate) fn section(&mut self, name: &'static str) -> Fields<'_> {
        self.section_of(name, Shape::of(Type::Object))
    }

    /// As [`Self::section`], with what the description says about it. It names no fields of one that takes any.
    pub(crate) fn section_as<R>(&mut self, name: &'static str, kind: Kind<R>) -> Fields<'_> {
        self.section_of(name, kind.shape)
    }

    fn section_of(&mut self, name: &'static str, shape: Shape) -> Fields<'_> {
        let path = self.path_of(name);
        let is_open = shape.of != Type::Object;
        let found = self.find(name, shape, Need::Nullable);
        let state = match (self.declared(), found) {
            (Some(declared), _) if !is_open => State::Described(declared),
            (_, Found::Absent) => State::Absent,
            (_, Found::Null) => State::Null,
            (_, Found::Value(value)) => object_state(value, &path, self.faults),
        };
        Fields {
            current: self.current_value(name),
            is_lenient: self.is_lenient,
            ..Fields::new(state, path, self.faults)
        }
    }

    /// Notes the fields that do not exist, those that cannot be changed, and duplicates.
    pub(crate) fn finish(self) {
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
                let message = "Stands here twice; send it once.";
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

/// What a list of objects takes, and what the description says about it.
pub(crate) struct Items {
    shape: Shape,
    need: Need,
    expected: &'static str,
    takes_null: bool,
}

/// A list of objects.
pub(crate) fn objects() -> Items {
    Items {
        shape: Shape::of(Type::Objects),
        need: Need::Nullable,
        expected: "an object",
        takes_null: true,
    }
}

impl Items {
    /// Says what the list means.
    pub(crate) fn about(mut self, about: &'static str) -> Self {
        self.shape.about = about;
        self
    }

    /// Says how many items the list has. A rule of the domain checks it.
    pub(crate) fn size(mut self, size: std::ops::RangeInclusive<usize>) -> Self {
        self.shape.min = i64::try_from(*size.start()).ok().filter(|min| *min > 0);
        self.shape.max = i64::try_from(*size.end()).ok();
        self
    }

    /// Says that the list must be there. A rule of the domain checks it.
    pub(crate) fn required(mut self) -> Self {
        self.need = Need::Required;
        self
    }

    /// Rejects items that are null or no objects in these words.
    pub(crate) fn each(mut self, expected: &'static str) -> Self {
        (self.expected, self.takes_null) = (expected, false);
        self
    }
}

enum Found<'a> {
    Absent,
    Null,
    Value(Value<'a>),
}

fn object_state<'a>(value: Value<'a>, path: &str, faults: &mut Faults) -> State<'a> {
    if let Some(members) = value.members() {
        State::Members(members)
    } else {
        faults.add(path, wrong_type("an object"));
        State::Absent
    }
}

fn required() -> Problem {
    Problem::new(FaultCode::Required, "Must be given.")
}

#[cfg(test)]
mod tests;
