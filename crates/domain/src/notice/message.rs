//! A message in a form that every channel can show.

use std::fmt::Write as _;

/// Maximum length of a subject in characters. Mail programs show less.
pub const SUBJECT_CHARS_MAX: usize = 150;

/// A value of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageValue {
    /// Name of the metric in the REST API.
    pub metric: &'static str,
    /// Name for people.
    pub label: String,
    /// Value for people.
    pub value: String,
    /// Change from the days before, such as `+12 %`.
    pub change: Option<String>,
    /// Value for programs: a decimal number; empty if unknown.
    pub plain: String,
}

/// A table of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageTable {
    /// Column headings.
    pub head: Vec<&'static str>,
    /// Rows; the first cell of each is its name.
    pub rows: Vec<Vec<String>>,
}

/// A message to people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// One line without control characters.
    pub subject: String,
    /// Paragraphs.
    pub lines: Vec<String>,
    /// Values.
    pub values: Vec<MessageValue>,
    /// Table below the values.
    pub table: Option<MessageTable>,
    /// URL of the page with more.
    pub link: String,
    /// Why the recipient gets this message.
    pub footer: String,
}

/// A message exactly as it would be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticePreview {
    /// Subject.
    pub subject: String,
    /// Plain text of an e-mail, or the JSON body for the other channels.
    pub body: String,
    /// HTML of an e-mail.
    pub html: Option<String>,
}

/// Makes one line of a text: control characters become spaces, and what is too long is cut.
pub(crate) fn one_line(text: &str) -> String {
    let clean = text.chars().map(|letter| {
        if letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}') {
            ' '
        } else {
            letter
        }
    });
    let mut line: String = clean.take(SUBJECT_CHARS_MAX + 1).collect();
    if line.chars().count() > SUBJECT_CHARS_MAX {
        line = line.chars().take(SUBJECT_CHARS_MAX - 1).collect();
        line.push('…');
    }
    line
}

fn padded(cells: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (place, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let room = " ".repeat(width.saturating_sub(cell.chars().count()));
        // Names are aligned to the left, numbers to the right.
        if place == 0 {
            line.extend([cell.as_str(), &room]);
        } else {
            line.extend(["  ", &room, cell.as_str()]);
        }
    }
    line.trim_end().to_owned()
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

impl Message {
    /// Returns the values and the table as lines of equal columns, for a font of fixed width.
    pub fn figures(&self) -> String {
        let values = self.values.iter().map(|one| {
            let change = one.change.clone().unwrap_or_default();
            vec![one.label.clone(), one.value.clone(), change]
        });
        let mut blocks = vec![values.collect::<Vec<_>>()];
        if let Some(table) = &self.table {
            let head = table.head.iter().map(|&title| title.to_owned()).collect();
            let rows = std::iter::once(head).chain(table.rows.iter().cloned());
            blocks.push(rows.collect());
        }
        blocks.retain(|block| !block.is_empty());
        let blocks = blocks.iter().map(|rows| {
            let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
            let width = |column: usize| {
                let cells = rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
            };
            let widths: Vec<usize> = (0..columns).map(width).collect();
            let lines = rows.iter().map(|row| padded(row, &widths));
            lines.collect::<Vec<_>>().join("\n")
        });
        blocks.collect::<Vec<_>>().join("\n\n")
    }

    /// Returns the message as plain text.
    pub fn text(&self) -> String {
        let mut parts = self.lines.clone();
        let figures = self.figures();
        if !figures.is_empty() {
            parts.push(figures);
        }
        parts.push(self.link.clone());
        parts.push(format!("-- \n{}", self.footer));
        parts.join("\n\n") + "\n"
    }

    /// Returns the message as HTML that every mail program shows: no script, no image, nothing from
    /// elsewhere.
    pub fn html(&self) -> String {
        const CELL: &str = "padding:4px 12px 4px 0;border-bottom:1px solid #dddddd;font-size:14px";
        let mut html = format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title></head>\
             <body style=\"font-family:sans-serif;font-size:15px;line-height:1.5;color:#1d2733;\
             background:#ffffff\">",
            escaped(&self.subject)
        );
        // Writing to a `String` cannot fail.
        for line in &self.lines {
            let _infallible = write!(html, "<p>{}</p>", escaped(line));
        }
        if !self.values.is_empty() {
            html.push_str("<table style=\"border-collapse:collapse\">");
            for one in &self.values {
                let change = one.change.as_deref().unwrap_or_default();
                let _infallible = write!(
                    html,
                    "<tr><th scope=\"row\" style=\"{CELL};text-align:left;font-weight:normal\">{}</th>\
                     <td style=\"{CELL};text-align:right\"><strong>{}</strong></td>\
                     <td style=\"{CELL};text-align:right;color:#555555\">{}</td></tr>",
                    escaped(&one.label),
                    escaped(&one.value),
                    escaped(change)
                );
            }
            html.push_str("</table>");
        }
        if let Some(table) = &self.table {
            html.push_str("<table style=\"border-collapse:collapse;margin-top:16px\"><tr>");
            for title in &table.head {
                let _infallible = write!(
                    html,
                    "<th scope=\"col\" style=\"{CELL};text-align:left\">{}</th>",
                    escaped(title)
                );
            }
            html.push_str("</tr>");
            for row in &table.rows {
                html.push_str("<tr>");
                for cell in row {
                    let _infallible = write!(html, "<td style=\"{CELL}\">{}</td>", escaped(cell));
                }
                html.push_str("</tr>");
            }
            html.push_str("</table>");
        }
        let _infallible = write!(
            html,
            "<p><a href=\"{0}\">{0}</a></p><p style=\"color:#555555;font-size:13px\">{1}</p></body></html>",
            escaped(&self.link),
            escaped(&self.footer)
        );
        html
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message() -> Message {
        Message {
            subject: "Runner".to_owned(),
            lines: vec!["<b>Figures</b> of a day".to_owned()],
            values: vec![MessageValue {
                metric: "installs",
                label: "Installs".to_owned(),
                value: "1,200".to_owned(),
                change: Some("+12 %".to_owned()),
                plain: "1200".to_owned(),
            }],
            table: Some(MessageTable {
                head: vec!["Network", "Installs"],
                rows: vec![vec!["Meta & co".to_owned(), "9".to_owned()]],
            }),
            link: "https://tributary.example.com/apps/app_1?from=a&to=b".to_owned(),
            footer: "Sent by Tributary.".to_owned(),
        }
    }

    #[test]
    fn the_text_has_aligned_columns() {
        let expected = "<b>Figures</b> of a day\n\n\
                        Installs  1,200  +12 %\n\n\
                        Network    Installs\n\
                        Meta & co         9\n\n\
                        https://tributary.example.com/apps/app_1?from=a&to=b\n\n\
                        -- \nSent by Tributary.\n";
        assert_eq!(message().text(), expected);
    }

    #[test]
    fn html_is_escaped() {
        let html = message().html();
        assert!(
            html.contains("<p>&lt;b&gt;Figures&lt;/b&gt; of a day</p>"),
            "{html}"
        );
        assert!(html.contains("Meta &amp; co"));
        assert!(html.contains("?from=a&amp;to=b\">"));
        assert!(!html.contains("<b>"));
    }

    proptest! {
        #[test]
        fn a_subject_is_one_line(text in "\\PC{0,100}[\\r\\n\\x00-\\x1f\\u{2028}]{0,5}.{0,200}") {
            let line = one_line(&text);
            prop_assert!(!line.chars().any(char::is_control));
            prop_assert!(line.chars().count() <= SUBJECT_CHARS_MAX);
        }
    }
}
