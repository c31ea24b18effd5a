//! Writes small country databases in the MaxMind format for tests.
//!
//! The format is a binary tree over address bits whose leaves point into a data section, followed
//! by metadata. Tree records have 24 bits; IPv4 addresses are at `::/96`.

use crate::config::AddressRange;
use std::net::IpAddr;

const MARKER: &[u8] = b"\xab\xcd\xefMaxMind.com";
/// Zero bytes between the tree and the data section.
const SEPARATOR: usize = 16;
/// 2026-01-01T00:00:00Z.
const BUILT_AT: u64 = 1_767_225_600;

const TEXT: u8 = 2;
const U16: u8 = 5;
const U32: u8 = 6;
const MAP: u8 = 7;
const U64: u8 = 9;
const LIST: u8 = 11;

/// What follows after one bit of an address in the tree.
#[derive(Clone, Copy)]
enum Branch {
    Nothing,
    Node(usize),
    Record(usize),
}

/// Writes a database with these ranges and countries. A nested range must come after its parent.
pub(crate) fn write(countries: &[(&str, &str)]) -> Vec<u8> {
    let mut nodes = vec![[Branch::Nothing; 2]];
    let mut records = Vec::new();
    for (range, country) in countries {
        let record = Branch::Record(records.len());
        insert(&mut nodes, &bits(range), record);
        field(&mut records, MAP, 1);
        text(&mut records, "country");
        field(&mut records, MAP, 1);
        text(&mut records, "iso_code");
        text(&mut records, country);
    }
    let mut file = Vec::new();
    for branch in nodes.iter().flatten() {
        let value = match *branch {
            Branch::Nothing => nodes.len(),
            Branch::Node(index) => index,
            Branch::Record(offset) => nodes.len() + SEPARATOR + offset,
        };
        file.extend(&u32::try_from(value).unwrap().to_be_bytes()[1..]);
    }
    file.extend([0; SEPARATOR]);
    file.extend(records);
    file.extend(MARKER);
    about(&mut file, nodes.len());
    file
}

/// Returns the prefix bits of a range, as positions in the tree.
fn bits(range: &str) -> Vec<usize> {
    let (first, prefix) = AddressRange::parse(range).unwrap().network();
    let (number, prefix) = match first {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()), usize::from(prefix) + 96),
        IpAddr::V6(v6) => (v6.to_bits(), usize::from(prefix)),
    };
    let bit = |position: usize| usize::from(number >> (127 - position) & 1 == 1);
    (0..prefix).map(bit).collect()
}

fn insert(nodes: &mut Vec<[Branch; 2]>, bits: &[usize], record: Branch) {
    let (last, way) = bits.split_last().unwrap();
    let mut node = 0;
    for bit in way {
        node = match nodes[node][*bit] {
            Branch::Node(next) => next,
            // Both halves inherit the whole range's value until one of them is overwritten.
            leaf => {
                nodes.push([leaf; 2]);
                let next = nodes.len() - 1;
                nodes[node][*bit] = Branch::Node(next);
                next
            }
        };
    }
    nodes[node][*last] = record;
}

fn about(file: &mut Vec<u8>, node_count: usize) {
    field(file, MAP, 9);
    number(file, "binary_format_major_version", U16, 2);
    number(file, "binary_format_minor_version", U16, 0);
    number(file, "build_epoch", U64, BUILT_AT);
    text(file, "database_type");
    text(file, "Test-Country");
    text(file, "description");
    field(file, MAP, 0);
    number(file, "ip_version", U16, 6);
    text(file, "languages");
    field(file, LIST, 0);
    number(file, "node_count", U32, node_count as u64);
    number(file, "record_size", U16, 24);
}

/// Writes the type and size of a value. Types above seven use an extra byte.
fn field(out: &mut Vec<u8>, kind: u8, size: usize) {
    let size = u8::try_from(size).unwrap();
    assert!(size < 29, "longer sizes need another encoding");
    if kind > MAP {
        out.extend([size, kind - MAP]);
    } else {
        out.push(kind << 5 | size);
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    field(out, TEXT, text.len());
    out.extend(text.as_bytes());
}

fn number(out: &mut Vec<u8>, name: &str, kind: u8, value: u64) {
    text(out, name);
    let bytes = value.to_be_bytes();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    field(out, kind, bytes.len() - zeros);
    out.extend(&bytes[zeros..]);
}
