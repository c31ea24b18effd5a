//! Basic types that every rule uses: ids, time, money, text, and faults in fields.

pub mod address_range;
pub mod calendar;
pub(crate) mod cbor;
pub mod certificate;
pub mod change;
pub mod country;
pub mod currency;
pub mod day;
pub mod digest;
pub mod fault;
pub mod field_input;
pub mod id;
pub mod jws;
pub mod keyword;
pub mod money;
pub mod number;
pub mod page;
pub mod revision;
pub mod subnet;
pub mod text;
pub mod time;
pub mod timezone;
pub mod web_url;
