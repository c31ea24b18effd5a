//! CSV writer (RFC 4180).

use ::csv::{Terminator, Writer, WriterBuilder};
use tributary_domain::report::spreadsheet_field;

/// CSV rows in memory.
pub(super) struct CsvLines(Writer<Vec<u8>>);

impl CsvLines {
    /// Creates an empty buffer with the given capacity in bytes.
    pub(super) fn with_capacity(bytes: usize) -> Self {
        let mut options = WriterBuilder::new();
        let options = options.terminator(Terminator::CRLF).flexible(true);
        Self(options.from_writer(Vec::with_capacity(bytes)))
    }

    /// Writes a field, quoted if necessary.
    pub(super) fn field(&mut self, field: &str) -> &mut Self {
        // Writing to memory cannot fail.
        let _infallible = self.0.write_field(spreadsheet_field(field).as_bytes());
        self
    }

    /// Writes an optional field.
    pub(super) fn optional(&mut self, field: Option<&str>) -> &mut Self {
        self.field(field.unwrap_or_default())
    }

    /// Ends the row.
    pub(super) fn end(&mut self) {
        let _infallible = self.0.write_record(None::<&[u8]>);
    }

    /// Returns all rows.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0.into_inner().unwrap_or_default()
    }
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
    #[case::formula("=1+1", "'=1+1")]
    #[case::formula_after_a_line_feed("\n=1", "\"'\n=1\"")]
    #[case::formula_after_a_space(" =1", "' =1")]
    #[case::wide_formula("＝1", "'＝1")]
    fn fields(#[case] field: &str, #[case] written: &str) {
        let mut lines = CsvLines::with_capacity(0);
        for _ in 0..2 {
            lines.field(field).optional(None).field("x").end();
        }
        let line = format!("{written},,x\r\n");
        assert_eq!(
            String::from_utf8(lines.into_bytes()).unwrap(),
            line.repeat(2)
        );
    }
}
