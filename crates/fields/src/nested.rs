//! Lists of objects, and nested objects.

use crate::describe::Requirement;
use crate::kind::{ValueSchema, ValueType, wrong_type};
use crate::value::InputValue;
use crate::{Fields, Lookup, State};
use std::ops::RangeInclusive;
use tributary_domain::vocabulary::field_input::FieldInput;

/// Declaration of a list of objects: how to read it, and how to describe it.
pub struct ObjectList {
    shape: ValueSchema,
    need: Requirement,
    expected: &'static str,
    accepts_null: bool,
}

/// Declares a list of objects.
pub fn objects() -> ObjectList {
    ObjectList {
        shape: ValueSchema::of(ValueType::Objects),
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

    /// Sets the length, for the API description only; a domain rule enforces it.
    #[must_use]
    pub fn size(mut self, size: RangeInclusive<usize>) -> Self {
        self.shape.min = i64::try_from(*size.start()).ok().filter(|min| *min > 0);
        self.shape.max = i64::try_from(*size.end()).ok();
        self
    }

    /// Marks the list as required, for the API description only; a domain rule enforces it.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.need = Requirement::Required;
        self
    }

    /// Rejects items that are null or not an object. The message says that `expected` is required.
    #[must_use]
    pub fn expecting_each(mut self, expected: &'static str) -> Self {
        (self.expected, self.accepts_null) = (expected, false);
        self
    }
}

impl<'a> Fields<'a> {
    /// Reads a list of objects, each with its path. A null item is treated as absent.
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
        let shape = ValueSchema {
            about,
            ..ValueSchema::of(ValueType::Object)
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

    /// Declares the fields of the list items that [`crate::list_as`] reads.
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
