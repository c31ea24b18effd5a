//! Runs the SDKs' tables against the server's functions: the server accepts the hashes that a
//! device computes, and an amount has the same value on the device and on the server.
//! `sdk/typescript/test/tables.test.ts` runs the same rows.

use serde_json::Value;
use tributary_domain::device::ContactHashes;
use tributary_domain::vocabulary::digest::{Digest, hex};
use tributary_domain::vocabulary::money::Amount;

/// Returns the rows of a table.
fn rows(table: &str) -> Vec<Value> {
    let table: Value = serde_json::from_str(table).expect("the table is JSON");
    table["cases"].as_array().expect("a list of cases").clone()
}

/// Returns a text field of a row.
fn text<'a>(row: &'a Value, field: &str) -> &'a str {
    row[field].as_str().expect("a text")
}

#[test]
fn the_server_accepts_the_hashes_of_a_device() {
    let rows = rows(include_str!("../../../sdk/tables/matching.json"));
    assert!(rows.len() >= 60);
    for row in &rows {
        let name = text(row, "name");
        let normalised = row["normalised"].as_object().unwrap();
        let hashes = row["hashes"].as_object().unwrap();
        assert_eq!(normalised.len(), hashes.len(), "{name}");
        for (variant, string) in normalised {
            let hash = hashes[variant].as_str().unwrap();
            let digest = Digest::of(string.as_str().unwrap().as_bytes());
            assert_eq!(hex(digest.as_bytes()), hash, "{name}: {variant}");
            assert_eq!(
                ContactHashes::parse_hash(hash).as_deref(),
                Ok(hash),
                "{name}: {variant}"
            );
        }
        // Clear text must not be accepted as a hash.
        assert!(
            ContactHashes::parse_hash(text(row, "input")).is_err(),
            "{name}"
        );
    }
}

/// The SDK has its own white space and lower-case rules; this test uses Rust's, from the Unicode
/// tables.
#[test]
fn an_email_is_trimmed_and_lowercased_by_unicode_rules() {
    for row in rows(include_str!("../../../sdk/tables/matching.json")) {
        let Some(email) = row["normalised"]["email"].as_str() else {
            continue;
        };
        let expected = text(&row, "input").trim().to_lowercase();
        assert_eq!(email, expected, "{}", text(&row, "name"));
    }
}

#[test]
fn an_amount_means_the_same_on_both_sides() {
    let rows = rows(include_str!("../../../sdk/tables/revenue.json"));
    assert!(rows.len() >= 60);
    for row in &rows {
        let name = text(row, "name");
        // An SDK sends every amount as text: a number as its shortest decimal.
        let sent = match text(row, "kind") {
            "text" => Some(text(row, "input")),
            _ => row["amount"].as_str(),
        };
        let read = sent.and_then(|sent| Amount::parse_text(sent).ok());
        let micros = read.map(|amount| amount.micros().to_string());
        assert_eq!(micros.as_deref(), row["micros"].as_str(), "{name}");
        let shortest = read.map(|amount| amount.to_string());
        assert_eq!(shortest.as_deref(), row["amount"].as_str(), "{name}");
    }
}
