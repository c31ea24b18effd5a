//! The tables with data about people who use the apps.
//!
//! A test compares the list with the columns of the database, so that a new table is exported and
//! erased, or is excluded with a reason.

/// A table with data about devices or users of apps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PersonalTable {
    /// Table.
    pub name: &'static str,
    /// How a person's export shows the rows.
    pub exported: ExportedRows,
    /// What an erasure does with the rows.
    pub erased: ErasedRows,
}

/// How an export shows the rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportedRows {
    /// In the section of this name.
    In(&'static str),
    /// Not at all, for this reason.
    LeftOut(&'static str),
}

/// What an erasure does with the rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErasedRows {
    /// The rows continue under the pseudonym, without personal data.
    Renamed,
    /// The rows are deleted.
    Deleted,
    /// The rows stay as they are, for this reason.
    Kept(&'static str),
}

const fn table(name: &'static str, exported: ExportedRows, erased: ErasedRows) -> PersonalTable {
    PersonalTable {
        name,
        exported,
        erased,
    }
}

use ErasedRows::{Deleted, Kept, Renamed};
use ExportedRows::{In, LeftOut};

/// All tables with data about people who use the apps.
pub const PERSONAL_TABLES: &[PersonalTable] = &[
    table("ad_services_tokens", In("devices"), Deleted),
    table(
        "billing_keys",
        LeftOut("an index of the notifications, which contain the same ids"),
        Renamed,
    ),
    table("clicks", In("clicks"), Renamed),
    table("cohort_devices", In("devices"), Renamed),
    table(
        "deliveries",
        In("events"),
        Kept("they contain the outcome and ids that are derived from the event's id"),
    ),
    table("devices", In("devices"), Renamed),
    table("erase_tokens", In("devices"), Renamed),
    table(
        "event_keys",
        LeftOut("an index of the events, which contain the same ids"),
        Kept("it recognises repeated events, and contains the ids of the sender only"),
    ),
    table("events", In("events"), Renamed),
    table("identities", In("devices"), Renamed),
    table("notifications", In("subscriptions"), Renamed),
    table(
        "outbox",
        In("events"),
        Kept("pending deliveries are cancelled and move to `deliveries`"),
    ),
    table(
        "refunded_payments",
        LeftOut("the sums of refunds, each of which is an event"),
        Kept("they contain the sender's id of a payment and an amount"),
    ),
    table(
        "rollup_increments",
        LeftOut("counts that are added to figures and cohorts within seconds"),
        Kept("they are merged before the device is erased"),
    ),
    table(
        "trials",
        In("subscriptions"),
        Kept("they contain the store's id of a subscription and a time"),
    ),
    table("user_links", In("userLinks"), Deleted),
];

/// Columns that refer to a person who uses an app, or to their click, event or subscription.
const PERSONAL_COLUMNS: [&str; 15] = [
    "address_hash",
    "advertising_hash",
    "advertising_id",
    "chain",
    "click_id",
    "device_id",
    "email_sha256",
    "event_id",
    "given_id",
    "idfv",
    "lookup_key",
    "matching",
    "taken_by",
    "user_agent",
    "user_id",
];

/// Returns whether a column refers to a person who uses an app. The id of a member of the
/// organization is also named `user_id`, but is not a text.
pub fn is_personal_column(name: &str, is_text: bool) -> bool {
    PERSONAL_COLUMNS.contains(&name) && (name != "user_id" || is_text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::personal_data::SECTIONS;

    #[test]
    fn every_table_is_shown_in_a_section() {
        assert!(PERSONAL_TABLES.is_sorted_by_key(|table| table.name));
        for table in PERSONAL_TABLES {
            if let In(section) = table.exported {
                let is_known = SECTIONS.iter().any(|known| known.name == section);
                assert!(is_known, "{}: {section}", table.name);
            }
        }
    }
}
