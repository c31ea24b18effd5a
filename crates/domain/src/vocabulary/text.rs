//! Text from outside, within its limits. Lengths are counted in characters where people write the text
//! and in bytes where programs do.

use crate::vocabulary::fault::{FaultCode, Problem};

/// What people call things.
pub const NAME_CHARS_MAX: usize = 200;
/// Ids that other systems gave.
pub const EXTERNAL_ID_BYTES_MAX: usize = 255;
/// Names of events, standard or not.
pub const EVENT_NAME_CHARS_MAX: usize = 255;

/// NUL is refused in every text: PostgreSQL cannot store it, and nobody means it.
pub fn reject_nul(text: &str) -> Result<(), Problem> {
    if text.contains('\0') {
        return Err(Problem::new(
            FaultCode::InvalidCharacter,
            "Remove the NUL character (U+0000).",
        ));
    }
    Ok(())
}

/// Checks a length in characters.
pub fn check_length(text: &str, min: usize, max: usize) -> Result<(), Problem> {
    reject_nul(text)?;
    let chars = text.chars().count();
    if chars < min {
        let message = if min == 1 {
            "Must not be empty.".to_owned()
        } else {
            format!("Must have at least {min} characters.")
        };
        return Err(Problem::new(FaultCode::TooShort, message));
    }
    if chars > max {
        let message = format!("Must have at most {max} characters.");
        return Err(Problem::new(FaultCode::TooLong, message));
    }
    Ok(())
}

/// An id that another system gave: 1–255 bytes of any kind.
pub fn check_external_id(text: &str) -> Result<&str, Problem> {
    reject_nul(text)?;
    if text.is_empty() {
        return Err(Problem::new(FaultCode::TooShort, "Must not be empty."));
    }
    if text.len() > EXTERNAL_ID_BYTES_MAX {
        let message = format!("Must have at most {EXTERNAL_ID_BYTES_MAX} bytes.");
        return Err(Problem::new(FaultCode::TooLong, message));
    }
    Ok(text)
}

/// What people call a thing: 1–200 characters, not only white space, no control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    /// Reads a name; surrounding white space is dropped.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let text = text.trim();
        check_length(text, 1, NAME_CHARS_MAX)?;
        if text.chars().any(char::is_control) {
            return Err(Problem::new(
                FaultCode::InvalidCharacter,
                "Must be one line without control characters.",
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of an event: 1–255 characters of any kind.
pub fn parse_event_name(text: &str) -> Result<String, Problem> {
    check_length(text, 1, EVENT_NAME_CHARS_MAX)?;
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::plain("Runner", Ok("Runner"))]
    #[case::trimmed("  Runner ", Ok("Runner"))]
    #[case::any_script("Läufer 走る", Ok("Läufer 走る"))]
    #[case::empty("", Err(FaultCode::TooShort))]
    #[case::white_space(" \t ", Err(FaultCode::TooShort))]
    #[case::nul("a\0b", Err(FaultCode::InvalidCharacter))]
    #[case::two_lines("a\nb", Err(FaultCode::InvalidCharacter))]
    #[case::escape("a\u{1b}[31m", Err(FaultCode::InvalidCharacter))]
    fn names(#[case] text: &str, #[case] expected: Result<&str, FaultCode>) {
        let parsed = Name::parse(text);
        assert_eq!(
            parsed.as_ref().map(Name::as_str).map_err(|p| p.code),
            expected
        );
    }

    #[test]
    fn a_name_has_at_most_200_characters_not_bytes() {
        assert!(Name::parse(&"ä".repeat(200)).is_ok());
        assert!(Name::parse(&"ä".repeat(201)).is_err());
    }
}
