//! Made-up organizations: what happened in their apps, and what goes on happening.
//!
//! Everything is handed to a store through its port, as the doors hand it over, so that installs, money, figures and
//! planned deliveries are what the rules make of it. The same seed gives the same organization, shifted to today.
//!
//! `tributary demo` shows it, the tests hold reports against it, and the benchmarks measure with it.

mod costs;
mod history;
mod live;
mod networks;
mod organization;
mod postbacks;
mod sample_app;

pub use history::{DAYS, write_history};
pub use live::LiveStream;
pub use organization::{Sample, SampleOwner, create_sample};
pub use sample_app::{AdLink, SampleAction, SampleApp, apply_all};
