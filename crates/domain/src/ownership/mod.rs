//! Ownership: which organization a domain or an App Store id belongs to.
//!
//! Anyone can type a name that belongs to somebody else. A name therefore excludes other
//! organizations only after its owner has proven control over it.

pub mod link_domain;
pub mod store_id;
