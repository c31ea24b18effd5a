//! Events.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::event::sdk::{SdkEvent, SdkEventOutcome, SdkRequestContext};
use tributary_domain::event::{Event, EventFilter};
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::page::{Page, PageRequest};

/// A page of the event log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    /// The events, newest first.
    pub items: Vec<Event>,
    /// Whether older events may exist.
    pub has_more: bool,
    /// Event at which the search stopped before the page was full. The next page continues after
    /// that event.
    pub stopped_at: Option<EventId>,
}

impl EventPage {
    /// Creates a page whose search did not stop early.
    pub fn complete(page: Page<Event>) -> Self {
        Self {
            items: page.items,
            has_more: page.has_more,
            stopped_at: None,
        }
    }

    /// Creates a page whose search may have stopped early. If more events were found than fit on
    /// the page, the page is complete and `stopped_at` is ignored.
    pub fn with_stop(page: Page<Event>, stopped_at: Option<EventId>) -> Self {
        if page.has_more {
            return Self::complete(page);
        }
        Self {
            items: page.items,
            has_more: stopped_at.is_some(),
            stopped_at,
        }
    }
}

/// Events.
#[async_trait]
pub trait Events: Send + Sync {
    /// Records one device's events in order, once per external id, with revenue, credit and
    /// figures. Returns one result per event.
    async fn accept_sdk_events(
        &self,
        arrival: SdkRequestContext,
        events: Vec<SdkEvent>,
    ) -> StoreResult<Vec<SdkEventOutcome>>;

    /// Lists an app's events in the caller's environment, newest first by event time. If no index
    /// supports the filter, a page scans a limited number of events ([`EventFilter::is_indexed`]).
    async fn events(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        filter: EventFilter,
        page: PageRequest,
    ) -> StoreResult<EventPage>;
}
