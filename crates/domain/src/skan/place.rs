//! Where in the document something stands: `windows[0].values[2].fineValue`.

use std::fmt;

/// A path, written out only when there is something to say about it. A document has thousands of
/// fields, and usually nothing is wrong with any of them.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place<'a> {
    /// The document.
    Root,
    /// A field of an object.
    Field(&'a Place<'a>, &'static str),
    /// An item of a list, from 0.
    Item(&'a Place<'a>, usize),
}

impl Place<'_> {
    /// A field of what stands here.
    pub(super) const fn field(&self, name: &'static str) -> Place<'_> {
        Place::Field(self, name)
    }

    /// An item of what stands here.
    pub(super) const fn item(&self, position: usize) -> Place<'_> {
        Place::Item(self, position)
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Place::Root, name) => formatter.write_str(name),
            Self::Field(parent, name) => write!(formatter, "{parent}.{name}"),
            Self::Item(parent, position) => write!(formatter, "{parent}[{position}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_as_its_path() {
        let windows = Place::Root.field("windows");
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
