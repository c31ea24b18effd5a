//! `GET /apps/{app}/explore.csv` — what the page shows, every row of it.

use super::columns::COLUMNS;
use super::found::find;
use crate::access::Reader;
use crate::failure::Failure;
use crate::range::Range;
use crate::state::Handles;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use std::fmt::Write as _;
use tributary_domain::access::AnalyticsRead;

/// A field of a CSV file. One that a spreadsheet would take for a formula is kept from being one.
fn field(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        "'"
    } else {
        ""
    };
    if guard.is_empty() && !text.contains(['"', ',', '\n', '\r']) {
        return text.to_owned();
    }
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

/// The file.
pub(crate) async fn csv(
    State(handles): State<Handles>,
    reader: Reader<AnalyticsRead>,
) -> Result<Response, Failure> {
    let zone = &reader.app()?.timezone;
    let range = Range::of(&reader.query, handles.source.now(), zone);
    let found = find(&handles, &reader, &range)
        .await?
        .map_err(|_| Failure::NotFound)?;
    let mut heads = found.heads();
    heads.extend(COLUMNS.iter().map(|column| column.word.to_owned()));
    let mut file = heads.join(",");
    for (place, row) in &found.rows {
        let values = found.values(place, &reader.query);
        let values = values.iter().map(|(words, _)| field(words));
        let figures = COLUMNS.iter().map(|column| column.plain(row));
        let line: Vec<String> = values.chain(figures).collect();
        // Writing to a String cannot fail.
        let _infallible = write!(file, "\r\n{}", line.join(","));
    }
    file.push_str("\r\n");
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"explore.csv\"",
        ),
        (header::CACHE_CONTROL, "no-store"),
    ]
    .map(|(name, value)| (name, HeaderValue::from_static(value)));
    Ok((headers, file).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("Spring", "Spring")]
    #[case("a,b", "\"a,b\"")]
    #[case("say \"hi\"", "\"say \"\"hi\"\"\"")]
    #[case("=1+1", "\"'=1+1\"")]
    #[case("@x", "\"'@x\"")]
    fn fields(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(field(text), expected);
    }
}
