//! Reading a body field by field, strictly: the type, the form, and what nobody asked for.
//!
//! A [`Node`] knows where it stands without owning its path, so that a body in which nothing is wrong costs no
//! allocation. What is wrong is a [`Violation`]; each network puts it into its own words.

mod currency;
mod values;
mod violation;

pub(crate) use currency::{IsoCurrency, ReceivedMoney};
pub(crate) use violation::{PathStep, Violation, ViolationKind, Violations};

use serde_json::Value;

/// Where a value stands: one step below its parent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodePath<'p> {
    step: Option<StepRef<'p>>,
    parent: Option<&'p NodePath<'p>>,
}

#[derive(Debug, Clone, Copy)]
enum StepRef<'p> {
    Field(&'p str),
    Index(usize),
}

impl NodePath<'_> {
    fn steps(&self) -> Vec<PathStep> {
        let mut steps = self.parent.map(NodePath::steps).unwrap_or_default();
        match self.step {
            Some(StepRef::Field(name)) => steps.push(PathStep::Field(name.to_owned())),
            Some(StepRef::Index(index)) => steps.push(PathStep::Index(index)),
            None => {}
        }
        steps
    }
}

/// A value and its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyNode<'v, 'p> {
    value: &'v Value,
    at: NodePath<'p>,
}

impl<'v> BodyNode<'v, '_> {
    /// The whole body.
    pub(crate) fn root(value: &'v Value) -> Self {
        let at = NodePath {
            step: None,
            parent: None,
        };
        Self { value, at }
    }

    /// A field that may be missing. `null` is a value, and of no type that anybody asks for.
    pub(crate) fn get<'o>(&'o self, name: &'o str) -> Option<BodyNode<'v, 'o>> {
        let value = self.value.as_object()?.get(name)?;
        Some(BodyNode {
            value,
            at: self.below(name),
        })
    }

    /// A field that must be there.
    pub(crate) fn require<'o>(
        &'o self,
        name: &'o str,
        found: &mut Violations,
    ) -> Option<BodyNode<'v, 'o>> {
        let field = self.get(name);
        if field.is_none() {
            self.report_missing(name, found);
        }
        field
    }

    /// Notes that a field is missing.
    pub(crate) fn report_missing(&self, name: &str, found: &mut Violations) {
        found.note(&self.below(name), ViolationKind::Missing);
    }

    /// Notes what is wrong with a field, there or not.
    pub(crate) fn report_at(&self, name: &str, wrong: ViolationKind, found: &mut Violations) {
        found.note(&self.below(name), wrong);
    }

    /// Notes what is wrong with this value.
    pub(crate) fn report(&self, wrong: ViolationKind, found: &mut Violations) {
        found.note(&self.at, wrong);
    }

    /// Whether a field is there.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.value.get(name).is_some()
    }

    /// One of a list.
    pub(crate) fn item<'o>(&'o self, index: usize, value: &'v Value) -> BodyNode<'v, 'o> {
        let at = NodePath {
            step: Some(StepRef::Index(index)),
            parent: Some(&self.at),
        };
        BodyNode { value, at }
    }

    /// The value itself.
    pub(crate) fn value(&self) -> &'v Value {
        self.value
    }

    fn below<'o>(&'o self, name: &'o str) -> NodePath<'o> {
        NodePath {
            step: Some(StepRef::Field(name)),
            parent: Some(&self.at),
        }
    }
}
