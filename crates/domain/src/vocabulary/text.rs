//! Text from outside, with length limits: in characters if people write it, in bytes if programs
//! do.

use crate::vocabulary::fault::{FaultCode, Problem};

/// Maximum length of a name in characters.
pub const NAME_CHARS_MAX: usize = 200;
/// Maximum length of an external id in bytes.
pub const EXTERNAL_ID_BYTES_MAX: usize = 255;
/// Maximum length of an event name in characters.
pub const EVENT_NAME_CHARS_MAX: usize = 255;

/// Rejects NUL, which PostgreSQL cannot store.
pub fn reject_nul(text: &str) -> Result<(), Problem> {
    if text.contains('\0') {
        return Err(Problem::new(
            FaultCode::InvalidCharacter,
            "Remove the NUL character (U+0000).",
        ));
    }
    Ok(())
}

/// Checks the length in characters.
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

/// Checks an id from another system: 1–255 bytes of any kind.
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

/// A name: 1–200 characters, not only white space, no control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    /// Parses a name and drops surrounding white space.
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

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Parses an event name: 1–255 characters of any kind.
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
    fn parses_names(#[case] text: &str, #[case] expected: Result<&str, FaultCode>) {
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
