//! Events and the figures made of them.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::event::sdk::{Arrival, SdkEvent};
use tributary_domain::event::{Event, EventFilter};
use tributary_domain::report::Figures;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;

/// What became of an event that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceptance {
    /// It is recorded.
    Accepted,
    /// An event of this id was recorded before; this one changed nothing.
    Duplicate,
}

/// Events.
#[async_trait]
pub trait Events: Send + Sync {
    /// Records events of one device in their order, each once by the id its sender gave, with its money, its
    /// credit and its figures. One answer per event.
    async fn accept_sdk_events(
        &self,
        arrival: Arrival,
        events: Vec<SdkEvent>,
    ) -> StoreResult<Vec<Acceptance>>;

    /// The log of an app in the caller's environment, newest first by the events' own time.
    async fn events(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        filter: EventFilter,
        page: PageRequest,
    ) -> StoreResult<Page<Event>>;

    /// The figures of an app between two moments, by credited network. Read from the roll-ups, so both moments
    /// are taken at the quarter of an hour that they fall into.
    async fn figures_by_network(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        from: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Vec<(String, Figures)>>;
}
