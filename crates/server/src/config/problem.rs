//! What is wrong with a configuration: all of it at once, each with its place.
//!
//! A message says what is expected and never repeats the refused value: the value may be a password that
//! was put into the wrong place.

use std::fmt;

/// One thing to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Where it stands: a variable's name, or a setting and its file.
    pub location: String,
    /// What was expected.
    pub message: String,
}

impl ConfigProblem {
    pub(super) fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            location: place.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.location, self.message)
    }
}

/// A configuration that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// Everything that has to be changed; never empty.
    pub problems: Vec<ConfigProblem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the configuration cannot be used:")?;
        self.problems
            .iter()
            .try_for_each(|problem| write!(formatter, "\n  - {problem}"))
    }
}
