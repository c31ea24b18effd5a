//! A credential in clear, for as long as a request is made of it.

/// A secret. It prints as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// From its opened text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text. It belongs into a request and nowhere else.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("***")
    }
}
