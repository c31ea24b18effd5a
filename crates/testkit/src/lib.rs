//! Shared test support: a server in this process with an injected clock and random source, a
//! server as a child process that can be killed, and a fresh database on either engine for each
//! server.

mod clock_shift;
mod database;
mod direct_connection;
mod dns;
pub mod fault_proxy;
mod hostile;
pub mod open_id;
pub mod postbacks;
mod probe;
mod process;
mod response;
mod runtime;
mod server;
mod smtp;

pub use clock_shift::ClockShift;
pub use database::{Engine, TestDatabase};
pub use direct_connection::{DirectConnection, TextRow};
pub use dns::TestDns;
pub use hostile::{HostileProxy, Misbehavior, TlsFault, test_authority, test_certificate};
pub use process::{ServerExit, ServerProcess};
pub use response::TestResponse;
pub use runtime::TestClock;
pub use server::{TestServer, TestServerSettings, client};
pub use smtp::{CaughtMail, SmtpBehavior, TestSmtp};
pub use tributary_sample::{AdLink, SampleAction, SampleApp, apply_all};
pub use tributary_store_postgres::server_pair::{PairedServer, ServerPair};

/// Generates two tests from an async function that takes an [`Engine`]: one for each engine.
#[macro_export]
macro_rules! on_both_engines {
    ($($(#[$attribute:meta])* async fn $name:ident($engine:ident: Engine) $body:block)*) => {
        $(
            mod $name {
                use super::*;

                $(#[$attribute])*
                async fn check($engine: $crate::Engine) $body

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn sqlite() {
                    check($crate::Engine::Sqlite).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn postgres() {
                    check($crate::Engine::Postgres).await;
                }
            }
        )*
    };
}
