//! Paths of fields in the document, such as `windows[0].values[2].fineValue`.

use std::fmt;

/// A path that is formatted only when needed. A document has thousands of fields, and usually none
/// of them has a fault.
#[derive(Debug, Clone, Copy)]
pub(super) enum FieldPath<'a> {
    /// The document itself.
    Root,
    /// A field of an object.
    Field(&'a FieldPath<'a>, &'static str),
    /// An item of a list, from 0.
    Item(&'a FieldPath<'a>, usize),
}

impl FieldPath<'_> {
    /// Returns the path of a field of this object.
    pub(super) const fn field(&self, name: &'static str) -> FieldPath<'_> {
        FieldPath::Field(self, name)
    }

    /// Returns the path of an item of this list.
    pub(super) const fn item(&self, position: usize) -> FieldPath<'_> {
        FieldPath::Item(self, position)
    }
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(FieldPath::Root, name) => formatter.write_str(name),
            Self::Field(parent, name) => write!(formatter, "{parent}.{name}"),
            Self::Item(parent, position) => write!(formatter, "{parent}[{position}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_formatted_with_dots_and_indexes() {
        let windows = FieldPath::Root.field("windows");
        let window = windows.item(0);
        let values = window.field("values");
        assert_eq!(windows.to_string(), "windows");
        assert_eq!(window.to_string(), "windows[0]");
        assert_eq!(
            values.item(2).field("fineValue").to_string(),
            "windows[0].values[2].fineValue"
        );
    }
}
