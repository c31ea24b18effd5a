//! Tuples of PostgreSQL's binary `COPY`: a count of fields, then each field's length and bytes.

use super::{ColumnOrigin, TransferTable, TransferType, campaign_digest};
use tributary_domain::vocabulary::digest::Digest;

/// Begins a stream of tuples: signature, no flags, no extension.
pub const TUPLES_HEADER: &[u8; 19] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// Ends a stream of tuples.
pub const TUPLES_TRAILER: [u8; 2] = (-1_i16).to_be_bytes();
/// Length of a field that is null.
const NULL_LENGTH: i32 = -1;
/// How PostgreSQL stores a missing link in a key.
const NO_LINK: [u8; 16] = [0; 16];

/// A value as SQLite stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellValue<'a> {
    /// No value.
    Null,
    /// An integer.
    Integer(i64),
    /// Text.
    Text(&'a [u8]),
    /// Bytes.
    Bytes(&'a [u8]),
}

/// A value does not have its column's type, or a stream of tuples is malformed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{table} contains a value that the other engine cannot store (column {column})")]
pub struct TupleFault {
    /// Table.
    pub table: String,
    /// Position of the column, counted from 1.
    pub column: usize,
}

/// Appends values with these types as one tuple.
pub fn encode_cells(
    types: &[TransferType],
    cells: &[CellValue<'_>],
    tuples: &mut Vec<u8>,
) -> Result<(), usize> {
    put_count(types.len(), tuples);
    for (position, kind) in types.iter().enumerate() {
        let cell = cells.get(position).copied().ok_or(position)?;
        put_cell(*kind, cell, tuples).ok_or(position)?;
    }
    Ok(())
}

impl TransferTable {
    /// Appends a row, given its stored values, as one tuple.
    pub fn encode_row(
        &self,
        stored: &[CellValue<'_>],
        tuples: &mut Vec<u8>,
    ) -> Result<(), TupleFault> {
        put_count(self.columns.len(), tuples);
        let mut next = stored.iter();
        for (position, column) in self.columns.iter().enumerate() {
            let put = match column.origin {
                ColumnOrigin::Stored => next
                    .next()
                    .and_then(|cell| put_cell(column.column_type, *cell, tuples)),
                ColumnOrigin::CampaignDigest(from) => {
                    digest_of(stored, from).and_then(|digest| put_bytes(digest.as_bytes(), tuples))
                }
            };
            put.ok_or_else(|| self.fault(position))?;
        }
        Ok(())
    }

    /// Returns the stored values of a row.
    pub fn decode_row<'a>(&self, tuple: &'a [u8]) -> Result<Vec<CellValue<'a>>, TupleFault> {
        let types: Vec<TransferType> = self.columns.iter().map(|c| c.column_type).collect();
        let cells = decode_cells(&types, tuple).map_err(|position| self.fault(position))?;
        let stored = self.columns.iter().zip(cells);
        Ok(stored
            .filter(|(column, _)| column.origin == ColumnOrigin::Stored)
            .map(|(_, cell)| cell)
            .collect())
    }

    fn fault(&self, position: usize) -> TupleFault {
        TupleFault {
            table: self.name.clone(),
            column: position + 1,
        }
    }
}

fn digest_of(stored: &[CellValue<'_>], from: [Option<usize>; 3]) -> Option<Digest> {
    let [campaign, adset, ad] = from.map(|position| match position {
        None => Some(""),
        Some(position) => match stored.get(position)? {
            CellValue::Text(text) => std::str::from_utf8(text).ok(),
            _ => None,
        },
    });
    Some(campaign_digest(campaign?, adset?, ad?))
}

fn put_count(fields: usize, tuples: &mut Vec<u8>) {
    // A table has at most a few dozen columns.
    let count = i16::try_from(fields).unwrap_or(i16::MAX);
    tuples.extend_from_slice(&count.to_be_bytes());
}

fn put_bytes(bytes: &[u8], tuples: &mut Vec<u8>) -> Option<()> {
    let length = i32::try_from(bytes.len()).ok()?;
    tuples.extend_from_slice(&length.to_be_bytes());
    tuples.extend_from_slice(bytes);
    Some(())
}

/// Appends a field. Returns `None` if the value does not have the type.
fn put_cell(kind: TransferType, cell: CellValue<'_>, tuples: &mut Vec<u8>) -> Option<()> {
    match (kind, cell) {
        (_, CellValue::Null) => {
            tuples.extend_from_slice(&NULL_LENGTH.to_be_bytes());
            Some(())
        }
        (TransferType::OptionalLink, CellValue::Bytes(&[])) => put_bytes(&NO_LINK, tuples),
        (TransferType::Uuid | TransferType::OptionalLink, CellValue::Bytes(bytes))
            if bytes.len() == 16 =>
        {
            put_bytes(bytes, tuples)
        }
        (TransferType::Bytes, CellValue::Bytes(bytes))
        | (TransferType::Text, CellValue::Text(bytes)) => put_bytes(bytes, tuples),
        (TransferType::BigInt, CellValue::Integer(number)) => {
            put_bytes(&number.to_be_bytes(), tuples)
        }
        (TransferType::Integer, CellValue::Integer(number)) => {
            put_bytes(&i32::try_from(number).ok()?.to_be_bytes(), tuples)
        }
        (TransferType::SmallInt, CellValue::Integer(number)) => {
            put_bytes(&i16::try_from(number).ok()?.to_be_bytes(), tuples)
        }
        (TransferType::Boolean, CellValue::Integer(number @ (0 | 1))) => {
            put_bytes(&[u8::from(number == 1)], tuples)
        }
        _ => None,
    }
}

/// Returns a tuple's values. Fails with the position of the first field that does not have its type.
pub fn decode_cells<'a>(
    types: &[TransferType],
    tuple: &'a [u8],
) -> Result<Vec<CellValue<'a>>, usize> {
    let mut fields = FieldReader { rest: tuple };
    let count = fields.count().ok_or(0_usize)?;
    if usize::try_from(count).ok() != Some(types.len()) {
        return Err(0);
    }
    let cells =
        types
            .iter()
            .enumerate()
            .map(|(position, kind)| match fields.field().ok_or(position)? {
                TupleField::Null => Ok(CellValue::Null),
                TupleField::Bytes(bytes) => cell_from(*kind, bytes).ok_or(position),
            });
    cells.collect()
}

fn cell_from(kind: TransferType, bytes: &[u8]) -> Option<CellValue<'_>> {
    Some(match kind {
        TransferType::OptionalLink if bytes == NO_LINK => CellValue::Bytes(&[]),
        TransferType::Uuid | TransferType::OptionalLink | TransferType::Bytes => {
            CellValue::Bytes(bytes)
        }
        TransferType::Text => CellValue::Text(bytes),
        TransferType::BigInt => CellValue::Integer(i64::from_be_bytes(bytes.try_into().ok()?)),
        TransferType::Integer => {
            CellValue::Integer(i32::from_be_bytes(bytes.try_into().ok()?).into())
        }
        TransferType::SmallInt => {
            CellValue::Integer(i16::from_be_bytes(bytes.try_into().ok()?).into())
        }
        TransferType::Boolean => {
            let [byte] = bytes else { return None };
            CellValue::Integer((*byte).into())
        }
    })
}

/// A field of a tuple.
enum TupleField<'a> {
    Null,
    Bytes(&'a [u8]),
}

/// Reads the parts of a tuple.
struct FieldReader<'a> {
    rest: &'a [u8],
}

impl<'a> FieldReader<'a> {
    fn count(&mut self) -> Option<i16> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(i16::from_be_bytes(*bytes))
    }

    /// Returns the next field, or `None` if it is incomplete.
    fn field(&mut self) -> Option<TupleField<'a>> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        let length = i32::from_be_bytes(*bytes);
        self.rest = rest;
        if length == NULL_LENGTH {
            return Some(TupleField::Null);
        }
        let (field, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.rest = rest;
        Some(TupleField::Bytes(field))
    }
}

/// Splits the bytes of a `COPY … TO STDOUT` into tuples.
#[derive(Debug, Default)]
pub struct TupleScanner {
    pending: Vec<u8>,
    is_begun: bool,
    is_ended: bool,
}

impl TupleScanner {
    /// Adds bytes and calls `found` with each complete tuple.
    pub fn scan<E>(
        &mut self,
        bytes: &[u8],
        mut found: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.pending.extend_from_slice(bytes);
        let mut at = 0;
        if !self.is_begun && self.pending.len() >= TUPLES_HEADER.len() {
            (at, self.is_begun) = (TUPLES_HEADER.len(), true);
        }
        while self.is_begun && !self.is_ended {
            let rest = self.pending.get(at..).unwrap_or_default();
            if rest.starts_with(&TUPLES_TRAILER) {
                self.is_ended = true;
                break;
            }
            let Some(length) = tuple_length(rest) else {
                break;
            };
            found(rest.get(..length).unwrap_or_default())?;
            at += length;
        }
        self.pending.drain(..at);
        Ok(())
    }

    /// Returns whether the end of the stream was found.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }
}

/// Returns the length of the first tuple, or `None` if it is incomplete.
fn tuple_length(bytes: &[u8]) -> Option<usize> {
    let mut fields = FieldReader { rest: bytes };
    for _ in 0..fields.count()? {
        fields.field()?;
    }
    Some(bytes.len() - fields.rest.len())
}

/// Number and checksum of rows, independent of their order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowSum {
    /// Number of rows.
    pub rows: u64,
    /// Sum of the first half of each row's SHA-256.
    sum: u128,
}

impl RowSum {
    /// Adds a row.
    pub fn add(&mut self, tuple: &[u8]) {
        let digest = Digest::of(tuple);
        let half = digest.as_bytes().first_chunk().copied().unwrap_or_default();
        self.rows += 1;
        self.sum = self.sum.wrapping_add(u128::from_be_bytes(half));
    }

    /// Adds the rows of another sum.
    pub fn merge(&mut self, other: Self) {
        self.rows += other.rows;
        self.sum = self.sum.wrapping_add(other.sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPES: [TransferType; 7] = [
        TransferType::Uuid,
        TransferType::Bytes,
        TransferType::Text,
        TransferType::BigInt,
        TransferType::Integer,
        TransferType::SmallInt,
        TransferType::Boolean,
    ];

    const CELLS: [CellValue<'_>; 7] = [
        CellValue::Bytes(&[7; 16]),
        CellValue::Bytes(b""),
        CellValue::Text("ö".as_bytes()),
        CellValue::Integer(i64::MIN),
        CellValue::Integer(-1),
        CellValue::Null,
        CellValue::Integer(1),
    ];

    #[test]
    fn a_decoded_tuple_has_the_encoded_values() {
        let mut tuple = Vec::new();
        encode_cells(&TYPES, &CELLS, &mut tuple).unwrap();
        assert_eq!(decode_cells(&TYPES, &tuple).unwrap(), CELLS);
    }

    #[test]
    fn a_missing_link_is_zeros_on_postgres_and_empty_on_sqlite() {
        let zeros = [&[0, 1, 0, 0, 0, 16], &[0; 16][..]].concat();
        for (kind, value) in [
            (TransferType::OptionalLink, &[][..]),
            (TransferType::Uuid, &[0; 16]),
        ] {
            let (types, cells) = ([kind], [CellValue::Bytes(value)]);
            let mut tuple = Vec::new();
            encode_cells(&types, &cells, &mut tuple).unwrap();
            assert_eq!(tuple, zeros);
            assert_eq!(decode_cells(&types, &tuple).unwrap(), cells);
        }
    }

    #[test]
    fn rejects_values_that_the_column_cannot_store() {
        let cases = [
            (TransferType::Uuid, CellValue::Bytes(&[7; 15])),
            (TransferType::Uuid, CellValue::Bytes(b"")),
            (TransferType::Text, CellValue::Bytes(b"x")),
            (TransferType::Integer, CellValue::Integer(1 << 31)),
            (TransferType::SmallInt, CellValue::Integer(1 << 15)),
            (TransferType::Boolean, CellValue::Integer(2)),
            (TransferType::BigInt, CellValue::Text(b"1")),
        ];
        for (kind, cell) in cases {
            assert_eq!(encode_cells(&[kind], &[cell], &mut Vec::new()), Err(0));
        }
    }

    #[test]
    fn finds_tuples_at_any_boundary() {
        let mut stream = TUPLES_HEADER.to_vec();
        for _ in 0..3 {
            encode_cells(&TYPES, &CELLS, &mut stream).unwrap();
        }
        stream.extend_from_slice(&TUPLES_TRAILER);
        for size in 1..stream.len() {
            let (mut scanner, mut sum) = (TupleScanner::default(), RowSum::default());
            for part in stream.chunks(size) {
                let add = |tuple: &[u8]| {
                    assert_eq!(decode_cells(&TYPES, tuple).unwrap(), CELLS);
                    sum.add(tuple);
                    Ok::<_, ()>(())
                };
                scanner.scan(part, add).unwrap();
            }
            assert_eq!((sum.rows, scanner.is_ended()), (3, true), "{size}");
        }
    }

    #[test]
    fn a_sum_depends_on_the_rows_and_not_on_their_order() {
        let sum = |rows: &[&[u8]]| {
            let mut sum = RowSum::default();
            for row in rows {
                sum.add(row);
            }
            sum
        };
        assert_eq!(sum(&[b"a", b"b"]), sum(&[b"b", b"a"]));
        assert_ne!(sum(&[b"a", b"b"]), sum(&[b"a", b"c"]));
        assert_ne!(sum(&[b"a"]), sum(&[b"a", b"a"]));
    }
}
