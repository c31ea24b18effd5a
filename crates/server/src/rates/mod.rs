//! Parsers for exchange rate files, fetched or imported.
//!
//! The format is detected from the content, because files get renamed and URLs may not contain a
//! file name. A file is parsed completely or not at all, and the first error is reported with its
//! location. The caller passes today's date; rates for later days than tomorrow are rejected.

mod collect;
mod csv;
mod currency_api;
mod ecb_xml;
mod frankfurter;
mod import;
mod latest;

pub use import::{RATES_PER_IMPORT, import};
pub use latest::{latest_imported_day, latest_second_source_day};

use std::fmt;
use tributary_domain::exchange::{Rate, RateBase};
use tributary_domain::vocabulary::day::Day;

/// Maximum file size. The European Central Bank's whole history is about half of that.
pub const RATES_FILE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Source name for rates in the European Central Bank's format.
pub const ECB_SOURCE: &str = "ecb";
/// Source name for rates in Frankfurter's format.
pub const FRANKFURTER_SOURCE: &str = "frankfurter";
/// Source name for rates in an operator's own file.
pub const FILE_SOURCE: &str = "file";

/// First bytes of zip and gzip files.
const ARCHIVE_SIGNATURES: [&[u8]; 3] = [b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b"];

/// Reason why a file was rejected. Each message says what to change.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The file exceeds the size limit.
    #[error("the file has more than {RATES_FILE_BYTES_MAX} bytes; split it by years")]
    TooLarge,
    /// The file is a zip or gzip archive.
    #[error("the file is compressed; unzip it first and import the file inside")]
    Compressed,
    /// The file is not UTF-8.
    #[error("{location}: the file is not UTF-8 text")]
    NotText {
        /// First invalid byte.
        location: FileLocation,
    },
    /// The format is unknown.
    #[error(
        "unknown exchange rate format: must be XML or CSV from the European Central Bank, JSON \
         from Frankfurter or from the currency API, or CSV with the header date,currency,perEur or \
         date,currency,perUsd"
    )]
    UnknownFormat,
    /// The format is known, but there are no rates.
    #[error("the file has no rates")]
    NoRates,
    /// The file contains an error.
    #[error("{location}: {problem}")]
    Invalid {
        /// Location of the error.
        location: FileLocation,
        /// Description of the error.
        problem: String,
    },
}

/// A location in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileLocation {
    /// A line, starting at one.
    Line(usize),
    /// A field in a JSON object.
    Field(String),
}

impl fmt::Display for FileLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(formatter, "line {line}"),
            Self::Field(name) => write!(formatter, "field {name}"),
        }
    }
}

impl FileLocation {
    /// Returns the line that contains the byte at an offset.
    fn at(content: &[u8], offset: usize) -> Self {
        let before = content.get(..offset).unwrap_or(content);
        Self::Line(before.split(|byte| *byte == b'\n').count())
    }

    /// Creates an error at this location.
    fn error(self, problem: impl Into<String>) -> ParseError {
        ParseError::Invalid {
            location: self,
            problem: problem.into(),
        }
    }
}

/// Parses a file with rates. In the result, each currency occurs at most once per day, and no day
/// is later than tomorrow.
pub fn parse(content: &[u8], today: Day) -> Result<Vec<Rate>, ParseError> {
    if content.len() > RATES_FILE_BYTES_MAX {
        return Err(ParseError::TooLarge);
    }
    if ARCHIVE_SIGNATURES
        .iter()
        .any(|start| content.starts_with(start))
    {
        return Err(ParseError::Compressed);
    }
    let text = std::str::from_utf8(content).map_err(|error| ParseError::NotText {
        location: FileLocation::at(content, error.valid_up_to()),
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let rates = match text.trim_start().chars().next() {
        None => return Err(ParseError::NoRates),
        Some('<') => ecb_xml::parse(text, today)?,
        Some('{') if currency_api::is_currency_api(text) => currency_api::parse(text, today)?,
        Some('{') => frankfurter::parse(text, today)?,
        Some(_) => csv::parse(text, today)?,
    };
    if rates.is_empty() {
        return Err(ParseError::NoRates);
    }
    Ok(rates)
}

#[cfg(test)]
mod tests;
