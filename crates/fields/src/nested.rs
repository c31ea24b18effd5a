//! Lists of objects, and nested objects.

use crate::describe::Requirement;
use crate::kind::{Shape, Type, wrong_type};
use crate::value::InputValue;
use crate::{Fields, Lookup, State};
use std::ops::RangeInclusive;
use tributary_domain::vocabulary::field_input::FieldInput;

/// Declaration of a list of objects: how it is read and described.
pub struct ObjectList {
    shape: Shape,
    need: Requirement,
    expected: &'static str,
    accepts_null: bool,
}

/// Declares a list of objects.
pub fn objects() -> ObjectList {
    ObjectList {
        shape: Shape::of(Type::Objects),
        need: Requirement::Nullable,
        expected: "an object",
        accepts_null: true,
    }
}

impl ObjectList {
    /// Sets the description.
    #[must_use]
    pub fn about(mut self, about: &'static str) -> Self {
        self.shape.about = about;
        self
    }

    /// Sets the length. Only described; a domain rule checks it.
    #[must_use]
    pub fn size(mut self, size: RangeInclusive<usize>) -> Self {
        self.shape.min = i64::try_from(*size.start()).ok().filter(|min| *min > 0);
        self.shape.max = i64::try_from(*size.end()).ok();
        self
    }

    /// Marks the list as required. Only described; a domain rule checks it.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.need = Requirement::Required;
        self
    }

    /// Rejects items that are null or not an object, with this expectation in the message.
    #[must_use]
    pub fn expecting_each(mut self, expected: &'static str) -> Self {
        (self.expected, self.accepts_null) = (expected, false);
        self
    }
}

impl<'a> Fields<'a> {
    /// Reads a list of objects, each with its path. A null item is absent.
    pub fn items<T>(
        &mut self,
        name: &'static str,
        list: ObjectList,
        mut read: impl FnMut(&mut Fields<'_>) -> T,
    ) -> FieldInput<Vec<FieldInput<T>>> {
        let (path, need) = (self.path_of(name), list.need);
        let found = self.find(name, list.shape, need);
        self.declare_items(name, &mut read);
        let value = match found {
            Lookup::Absent | Lookup::Null => return FieldInput::Absent,
            Lookup::Value(value) => value,
        };
        let Some(items) = value.items() else {
            self.add_fault(name, wrong_type("a list"));
            return FieldInput::Invalid;
        };
        let item = |(index, value): (usize, InputValue<'a>)| {
            let path = format!("{path}[{index}]");
            if value.is_null() && list.accepts_null {
                FieldInput::Absent
            } else if let Some(members) = value.members() {
                let mut fields = Fields::new(State::Members(members), path, self.faults);
                let item = read(&mut fields);
                fields.finish();
                FieldInput::Value(item)
            } else {
                self.faults.add(path, wrong_type(list.expected));
                FieldInput::Invalid
            }
        };
        FieldInput::Value(items.into_iter().enumerate().map(item).collect())
    }

    /// Reads a nested object whose fields the domain validates together.
    pub fn object<T>(
        &mut self,
        name: &'static str,
        about: &'static str,
        read: impl FnOnce(&mut Fields<'_>) -> T,
    ) -> FieldInput<T> {
        let path = self.path_of(name);
        let shape = Shape {
            about,
            ..Shape::of(Type::Object)
        };
        let found = self.find(name, shape, Requirement::Nullable);
        let state = match (self.declared(), found) {
            (Some(declared), _) => State::Described(declared),
            (None, Lookup::Absent | Lookup::Null) => return FieldInput::Absent,
            (None, Lookup::Value(value)) => {
                let Some(members) = value.members() else {
                    self.add_fault(name, wrong_type("an object"));
                    return FieldInput::Invalid;
                };
                State::Members(members)
            }
        };
        let mut fields = Fields::new(state, path, self.faults);
        let value = read(&mut fields);
        fields.finish();
        FieldInput::Value(value)
    }

    /// Declares the fields of the items of a list that [`crate::list_as`] reads.
    pub fn declare_items<T>(
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
}
