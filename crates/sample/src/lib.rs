//! Sample organizations: the history of their apps, and a live stream of new activity.
//!
//! All data is written through the store's traits, as the endpoints do it, so that installs,
//! revenue, figures and planned deliveries are computed by the same rules. The same seed gives the
//! same organization, shifted to today.
//!
//! `tributary demo` shows this data, tests compare reports with it, and benchmarks use it.

mod billing;
mod costs;
mod day_plan;
mod fraud;
mod history;
mod live;
mod networks;
mod notices;
mod organization;
mod past_deliveries;
mod postbacks;
mod sample_app;

pub use history::{DAYS, write_history};
pub use live::LiveStream;
pub use organization::{Sample, SampleOwner, create_sample};
pub use sample_app::{AdLink, SampleAction, SampleApp, apply_all};
