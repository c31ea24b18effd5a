//! Strict validation of request bodies: types, formats and unknown fields.
//!
//! A [`BodyNode`] knows its path without owning it, so validating a correct body allocates nothing.
//! Each network formats a [`Violation`] in its own way.

mod currency;
mod values;
mod violation;

pub(crate) use currency::{IsoCurrency, ReceivedMoney};
pub(crate) use violation::{PathStep, Violation, ViolationKind, Violations};

use serde_json::Value;

/// A value's path: one step below its parent.
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

/// A value with its path.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyNode<'v, 'p> {
    value: &'v Value,
    at: NodePath<'p>,
}

impl<'v> BodyNode<'v, '_> {
    /// Returns the node for the whole body.
    pub(crate) fn root(value: &'v Value) -> Self {
        let at = NodePath {
            step: None,
            parent: None,
        };
        Self { value, at }
    }

    /// Returns an optional field. `null` counts as a value, which no type accepts.
    pub(crate) fn get<'o>(&'o self, name: &'o str) -> Option<BodyNode<'v, 'o>> {
        let value = self.value.as_object()?.get(name)?;
        Some(BodyNode {
            value,
            at: self.below(name),
        })
    }

    /// Returns a required field, or reports it as missing.
    pub(crate) fn require<'o>(
        &'o self,
        name: &'o str,
        violations: &mut Violations,
    ) -> Option<BodyNode<'v, 'o>> {
        let field = self.get(name);
        if field.is_none() {
            self.report_missing(name, violations);
        }
        field
    }

    /// Reports a missing field.
    pub(crate) fn report_missing(&self, name: &str, violations: &mut Violations) {
        violations.note(&self.below(name), ViolationKind::Missing);
    }

    /// Reports a violation for a field, present or not.
    pub(crate) fn report_at(&self, name: &str, wrong: ViolationKind, violations: &mut Violations) {
        violations.note(&self.below(name), wrong);
    }

    /// Reports a violation for this value.
    pub(crate) fn report(&self, wrong: ViolationKind, violations: &mut Violations) {
        violations.note(&self.at, wrong);
    }

    /// Returns whether a field is present.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.value.get(name).is_some()
    }

    /// Returns the node for a list item.
    pub(crate) fn item<'o>(&'o self, index: usize, value: &'v Value) -> BodyNode<'v, 'o> {
        let at = NodePath {
            step: Some(StepRef::Index(index)),
            parent: Some(&self.at),
        };
        BodyNode { value, at }
    }

    /// Returns the value.
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
