//! Verified website events.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::event::web::{AcceptedWebEvent, WebEvent};

/// Verified website events.
#[async_trait]
pub trait WebEvents: Send + Sync {
    /// Records an event once by the id that its sender gave, with its money, its credit, its receipt and its
    /// figures, or refuses it (`domain::event::web::decide`). What a payment's refunds come to is bound under
    /// concurrency, too. The click that it names is kept from then on.
    async fn accept_web_event(&self, posted: WebEvent) -> StoreResult<AcceptedWebEvent>;
}
