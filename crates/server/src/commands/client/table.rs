//! Aligned tables.

use serde_json::Value;
use serde_json::value::RawValue;
use tributary_domain::vocabulary::time::Timestamp;

/// A column of a table.
pub(super) struct TableColumn {
    title: String,
    /// JSON pointer to the value in a row.
    pointer: String,
    kind: CellKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CellKind {
    Text,
    /// Aligned to the right.
    Number,
    /// Milliseconds since 1970.
    Time,
}

impl TableColumn {
    pub(super) fn text(title: &str, pointer: &str) -> Self {
        Self::new(title, pointer, CellKind::Text)
    }

    pub(super) fn number(title: &str, pointer: &str) -> Self {
        Self::new(title, pointer, CellKind::Number)
    }

    pub(super) fn time(title: &str, pointer: &str) -> Self {
        Self::new(title, pointer, CellKind::Time)
    }

    fn new(title: &str, pointer: &str, kind: CellKind) -> Self {
        Self {
            title: title.to_uppercase(),
            pointer: pointer.to_owned(),
            kind,
        }
    }

    fn cell(&self, row: &Value) -> String {
        let value = row.pointer(&self.pointer).unwrap_or(&Value::Null);
        match (self.kind, value.as_i64()) {
            (CellKind::Time, Some(millis)) => {
                crate::commands::admin::format_time(Timestamp::from_millis(millis))
            }
            _ => cell(value),
        }
    }
}

/// A table that is printed page by page. Columns keep the width of earlier pages.
pub(super) struct Table {
    columns: Vec<TableColumn>,
    widths: Vec<usize>,
    has_title: bool,
}

impl Table {
    pub(super) fn new(columns: Vec<TableColumn>) -> Self {
        let widths = columns.iter().map(|column| width(&column.title)).collect();
        Self {
            columns,
            widths,
            has_title: false,
        }
    }

    /// Returns the lines of a page, after the titles if it is the first one with rows.
    pub(super) fn rows(&mut self, rows: &[&RawValue]) -> serde_json::Result<String> {
        let mut lines: Vec<Vec<String>> = Vec::new();
        if !rows.is_empty() && !self.has_title {
            self.has_title = true;
            lines.push(
                self.columns
                    .iter()
                    .map(|column| column.title.clone())
                    .collect(),
            );
        }
        for row in rows {
            let row: Value = serde_json::from_str(row.get())?;
            let cells = self.columns.iter().map(|column| column.cell(&row));
            lines.push(cells.collect());
        }
        for line in &lines {
            for (column, text) in self.widths.iter_mut().zip(line) {
                *column = (*column).max(width(text));
            }
        }
        Ok(lines.iter().map(|line| self.line(line)).collect())
    }

    fn line(&self, cells: &[String]) -> String {
        let mut line = String::new();
        for ((column, text), wide) in self.columns.iter().zip(cells).zip(&self.widths) {
            if !line.is_empty() {
                line.push_str("  ");
            }
            let padding = " ".repeat(wide - width(text));
            if column.kind == CellKind::Number {
                line.push_str(&padding);
                line.push_str(text);
            } else {
                line.push_str(text);
                line.push_str(&padding);
            }
        }
        line.truncate(line.trim_end().len());
        line.push('\n');
        line
    }
}

/// Returns lines with aligned values.
pub(super) fn aligned_pairs(pairs: &[(String, String)]) -> String {
    let wide = pairs.iter().map(|(name, _)| width(name)).max();
    let wide = wide.unwrap_or_default();
    let line = |(name, value): &(String, String)| {
        format!("{name}{}  {value}\n", " ".repeat(wide - width(name)))
    };
    pairs.iter().map(line).collect()
}

/// Returns the text of a value.
pub(super) fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => printable(text),
        Value::Bool(is_true) => if *is_true { "yes" } else { "no" }.to_owned(),
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(","),
        Value::Number(_) | Value::Object(_) => printable(&value.to_string()),
    }
}

/// Escapes control characters. Names of events and links come from outside, and must not control the
/// terminal or break a line.
pub(super) fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || is_direction(character) {
            safe.extend(character.escape_unicode());
        } else {
            safe.push(character);
        }
    }
    safe
}

/// Marks that reverse the order of the following text.
fn is_direction(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        Table::new(vec![
            TableColumn::time("time", "/at"),
            TableColumn::text("name", "/name"),
            TableColumn::number("usd", "/revenue/usd"),
            TableColumn::text("tags", "/tags"),
        ])
    }

    fn rows(table: &mut Table, rows: &[&str]) -> String {
        let rows: Vec<&RawValue> = rows
            .iter()
            .map(|row| serde_json::from_str(row).unwrap())
            .collect();
        table.rows(&rows).unwrap()
    }

    #[test]
    fn columns_are_aligned_across_pages() {
        let mut table = table();
        let first = rows(
            &mut table,
            &[
                r#"{"at": 0, "name": "purchase", "revenue": {"usd": 9.99}, "tags": ["a", "b"]}"#,
                r#"{"at": null, "name": "ä", "revenue": null, "tags": []}"#,
            ],
        );
        assert_eq!(
            first,
            "TIME                  NAME       USD  TAGS\n\
             1970-01-01T00:00:00Z  purchase  9.99  a,b\n\
             -                     ä            -  -\n"
        );
        let second = rows(&mut table, &[r#"{"name": "x", "revenue": {"usd": 100.5}}"#]);
        assert_eq!(second, "-                     x         100.5  -\n");
    }

    #[test]
    fn no_rows_print_no_titles() {
        assert_eq!(rows(&mut table(), &[]), "");
    }

    #[test]
    fn a_name_cannot_control_the_terminal() {
        let row = r#"{"name": "\u001b[31mred\n\u202e"}"#;
        let text = rows(&mut table(), &[row]);
        assert!(text.contains(r"\u{1b}[31mred\u{a}\u{202e}"), "{text}");
        assert_eq!(text.lines().count(), 2);
    }
}
