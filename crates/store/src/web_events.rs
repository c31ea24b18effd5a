//! Verified web events.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::event::web::{AcceptedWebEvent, WebEvent};

/// Verified web events.
#[async_trait]
pub trait WebEvents: Send + Sync {
    /// Records an event once per external id, with revenue, credit, receipt and figures, or refuses
    /// it (`domain::event::web::decide`). The refunds of a payment never exceed it, also under
    /// concurrent calls. The click that the event names is protected from removal.
    async fn accept_web_event(&self, posted: WebEvent) -> StoreResult<AcceptedWebEvent>;
}
