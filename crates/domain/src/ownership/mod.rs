//! Ownership: which organization a domain or an App Store id belongs to.
//!
//! Any app can name a domain or an id that belongs to another organization. A name therefore
//! excludes other organizations only after its owner has proven control over it.

pub mod link_domain;
pub mod store_id;
