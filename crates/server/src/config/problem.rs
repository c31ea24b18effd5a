//! Errors in a configuration: all of them at once, each with its location.
//!
//! Messages say what is expected and never repeat the rejected value, which may be a password in
//! the wrong place.

use std::fmt;

/// One setting to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Environment variable, or setting and file.
    pub location: String,
    /// Expected value.
    pub message: String,
}

impl ConfigProblem {
    pub(super) fn new(location: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            location: location.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.location, self.message)
    }
}

/// A configuration with errors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    /// All errors; never empty.
    pub problems: Vec<ConfigProblem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("invalid configuration:")?;
        self.problems
            .iter()
            .try_for_each(|problem| write!(formatter, "\n  - {problem}"))
    }
}
