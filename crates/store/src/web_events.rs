//! Verified web events.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::event::web::{AcceptedWebEvent, WebEvent, WebEventPreview};

/// Verified web events.
#[async_trait]
pub trait WebEvents: Send + Sync {
    /// Records an event once per external id, or refuses it (`domain::event::web::decide`). Also
    /// records its revenue, credit and figures, and the payment data that later renewals and
    /// refunds need. The total of a payment's refunds never exceeds the payment, even under
    /// concurrent calls. The click that the event refers to is protected from removal.
    async fn accept_web_event(&self, posted: WebEvent) -> StoreResult<AcceptedWebEvent>;

    /// Decides an event on one snapshot, like `accept_web_event`, but also accepts clicks on test
    /// links (`domain::event::web::preview`). Locks and writes nothing.
    async fn validate_web_event(&self, posted: WebEvent) -> StoreResult<WebEventPreview>;
}
