//! Deterministic simulation of Tributary.
//!
//! One run executes the real router, rules, transactions, forwarder and SQLite adapter in one
//! thread. A seed decides everything else: the load, the order in which tasks continue, the time,
//! the errors of the disk and of the networks, and the points at which the process dies. The same
//! seed gives the same run, so a failure can be repeated and made smaller.
//!
//! | Module | Simulates |
//! |---|---|
//! | `world` | the machine: clock, random numbers, the points at which a process may die |
//! | `disk`, `vfs` | the disk: what is durable, and which calls fail |
//! | `network` | the line to the strict simulator of the ad networks |
//! | `node` | one process of the server |
//! | `client`, `requests`, `model` | the clients, and what they know |
//! | `check` | compares what is stored, shown and received with what the clients know |
//! | `generate`, `scenario`, `campaign` | scenarios from seeds, and many runs |

mod campaign;
mod check;
mod client;
mod disk;
mod generate;
mod model;
mod network;
mod node;
mod requests;
mod rng;
mod run;
mod scenario;
mod template;
mod totals;
mod vfs;
mod world;

pub use campaign::{
    CampaignReport, Extent, Failure, Selection, command_for, run_campaign, run_caught, shrink,
};
pub use disk::{DiskCall, DiskError, DiskFault, FileKind};
pub use generate::generate;
pub use run::{RunReport, run};
pub use scenario::{
    BillingKind, Element, End, EndKind, Keys, NetworkFault, NetworkFaultKind, Request, Scenario,
    Weakening, WebKind,
};
pub use totals::Totals;
