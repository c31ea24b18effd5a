//! Lines of a table (RFC 4180).

/// A line that is being written.
pub(super) struct Line<'a> {
    text: &'a mut Vec<u8>,
    is_first: bool,
}

impl<'a> Line<'a> {
    pub(super) fn new(text: &'a mut Vec<u8>) -> Self {
        Self {
            text,
            is_first: true,
        }
    }

    /// Writes a field, in quotes where it has to be. A field that a spreadsheet would run as a formula gets a
    /// quote before it; numbers are left alone.
    pub(super) fn field(&mut self, field: &str) -> &mut Self {
        if !self.is_first {
            self.text.push(b',');
        }
        self.is_first = false;
        let runs = field.starts_with(['=', '+', '-', '@', '\t', '\r']) && !is_number(field);
        if !runs && !field.contains([',', '"', '\n', '\r']) {
            self.text.extend_from_slice(field.as_bytes());
            return self;
        }
        self.text.push(b'"');
        if runs {
            self.text.push(b'\'');
        }
        for byte in field.bytes() {
            if byte == b'"' {
                self.text.push(b'"');
            }
            self.text.push(byte);
        }
        self.text.push(b'"');
        self
    }

    /// A field that may be empty.
    pub(super) fn optional(&mut self, field: Option<&str>) -> &mut Self {
        self.field(field.unwrap_or_default())
    }

    pub(super) fn end(&mut self) {
        self.text.extend_from_slice(b"\r\n");
    }
}

fn is_number(field: &str) -> bool {
    let digits = field.strip_prefix('-').unwrap_or(field);
    !digits.is_empty()
        && digits
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::plain("a b", "a b")]
    #[case::empty("", "")]
    #[case::comma("a,b", "\"a,b\"")]
    #[case::quote("a\"b", "\"a\"\"b\"")]
    #[case::line("a\nb", "\"a\nb\"")]
    #[case::formula("=1+1", "\"'=1+1\"")]
    #[case::negative("-9.99", "-9.99")]
    #[case::minus_formula("-1+cmd", "\"'-1+cmd\"")]
    fn fields(#[case] field: &str, #[case] written: &str) {
        let mut text = Vec::new();
        Line::new(&mut text).field(field).field("x").end();
        assert_eq!(String::from_utf8(text).unwrap(), format!("{written},x\r\n"));
    }
}
