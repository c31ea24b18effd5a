//! Reading a body field by field, strictly: the type, the form, and what nobody asked for.
//!
//! A [`Node`] knows where it stands without owning its path, so that a body in which nothing is wrong costs no
//! allocation. What is wrong is a [`Violation`]; each network puts it into its own words.

mod currency;
mod values;
mod violation;

pub(crate) use currency::{Currency, Money};
pub(crate) use violation::{Found, Step, Violation, Wrong};

use serde_json::Value;

/// Where a value stands: one step below its parent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'p> {
    step: Option<StepRef<'p>>,
    parent: Option<&'p At<'p>>,
}

#[derive(Debug, Clone, Copy)]
enum StepRef<'p> {
    Field(&'p str),
    Index(usize),
}

impl At<'_> {
    fn steps(&self) -> Vec<Step> {
        let mut steps = self.parent.map(At::steps).unwrap_or_default();
        match self.step {
            Some(StepRef::Field(name)) => steps.push(Step::Field(name.to_owned())),
            Some(StepRef::Index(index)) => steps.push(Step::Index(index)),
            None => {}
        }
        steps
    }
}

/// A value and its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node<'v, 'p> {
    value: &'v Value,
    at: At<'p>,
}

impl<'v> Node<'v, '_> {
    /// The whole body.
    pub(crate) fn root(value: &'v Value) -> Self {
        let at = At {
            step: None,
            parent: None,
        };
        Self { value, at }
    }

    /// A field that may be missing. `null` is a value, and of no type that anybody asks for.
    pub(crate) fn get<'o>(&'o self, name: &'o str) -> Option<Node<'v, 'o>> {
        let value = self.value.as_object()?.get(name)?;
        Some(Node {
            value,
            at: self.below(name),
        })
    }

    /// A field that must be there.
    pub(crate) fn need<'o>(&'o self, name: &'o str, found: &mut Found) -> Option<Node<'v, 'o>> {
        let field = self.get(name);
        if field.is_none() {
            self.missing(name, found);
        }
        field
    }

    /// Notes that a field is missing.
    pub(crate) fn missing(&self, name: &str, found: &mut Found) {
        found.note(&self.below(name), Wrong::Missing);
    }

    /// Notes what is wrong with a field, there or not.
    pub(crate) fn wrong_at(&self, name: &str, wrong: Wrong, found: &mut Found) {
        found.note(&self.below(name), wrong);
    }

    /// Notes what is wrong with this value.
    pub(crate) fn wrong(&self, wrong: Wrong, found: &mut Found) {
        found.note(&self.at, wrong);
    }

    /// Whether a field is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.value.get(name).is_some()
    }

    /// One of a list.
    pub(crate) fn item<'o>(&'o self, index: usize, value: &'v Value) -> Node<'v, 'o> {
        let at = At {
            step: Some(StepRef::Index(index)),
            parent: Some(&self.at),
        };
        Node { value, at }
    }

    /// The value itself.
    pub(crate) fn value(&self) -> &'v Value {
        self.value
    }

    fn below<'o>(&'o self, name: &'o str) -> At<'o> {
        At {
            step: Some(StepRef::Field(name)),
            parent: Some(&self.at),
        }
    }
}
