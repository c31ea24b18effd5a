//! Files of exchange rates, as they are fetched or imported, read into the domain's rates.
//!
//! What a file is shows in its content, not in its name: people rename files, and an address that is
//! fetched has no name. A file is read whole or not at all, and the first thing that is wrong with it is
//! said together with its place. What day it is today is passed in: rates of the future are refused.

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

/// Bytes of a file, at most. The whole history of the European Central Bank has about half as many.
pub const RATES_FILE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What the source of a rate reads that is in the form of the European Central Bank.
pub const ECB_SOURCE: &str = "ecb";
/// What the source of a rate reads that is in the form of Frankfurter.
pub const FRANKFURTER_SOURCE: &str = "frankfurter";
/// What the source of a rate reads that the operator wrote down.
pub const FILE_SOURCE: &str = "file";

/// How zip files begin, and gzip files.
const ARCHIVE_SIGNATURES: [&[u8]; 3] = [b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b"];

/// Why a file was not read. Each says what to change.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// More bytes than the limit.
    #[error("the file has more than {RATES_FILE_BYTES_MAX} bytes; split it by years")]
    TooLarge,
    /// A zip or gzip file.
    #[error("the file is packed; unzip it first and import the file inside")]
    Compressed,
    /// Not UTF-8.
    #[error("{location}: the file is not text in UTF-8")]
    NotText {
        /// Where it stops being text.
        location: FileLocation,
    },
    /// None of the forms.
    #[error(
        "this is no known form of exchange rates: it must be the XML or CSV of the European Central \
         Bank, the JSON of Frankfurter or of the currency API, or CSV with the header date,currency,perEur or \
         date,currency,perUsd"
    )]
    UnknownFormat,
    /// A known form, but nothing in it.
    #[error("the file has no rates")]
    NoRates,
    /// Something in it is wrong.
    #[error("{location}: {problem}")]
    Invalid {
        /// Where.
        location: FileLocation,
        /// What.
        problem: String,
    },
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileLocation {
    /// A line, counted from one.
    Line(usize),
    /// A field of a JSON object.
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
    /// The line of the byte at the offset.
    fn at(content: &[u8], offset: usize) -> Self {
        let before = content.get(..offset).unwrap_or(content);
        Self::Line(before.split(|byte| *byte == b'\n').count())
    }

    /// What is wrong here.
    fn error(self, problem: impl Into<String>) -> ParseError {
        ParseError::Invalid {
            location: self,
            problem: problem.into(),
        }
    }
}

/// Reads a file of rates. Each currency stands at most once for a day, and no day is later than tomorrow.
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
