//! Events and the figures made of them.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{AnalyticsRead, Authorized};
use tributary_domain::event::sdk::{Acceptance, SdkEvent, SdkRequestContext};
use tributary_domain::event::{Event, EventFilter};
use tributary_domain::vocabulary::id::{AppId, EventId};
use tributary_domain::vocabulary::page::{Page, PageRequest};

/// A page of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    /// The events, newest first.
    pub items: Vec<Event>,
    /// True when older ones may exist.
    pub has_more: bool,
    /// Where the search stopped before the page was full, if it did: the next one continues behind it.
    pub stopped_at: Option<EventId>,
}

impl EventPage {
    /// A page whose search was not cut short.
    pub fn complete(page: Page<Event>) -> Self {
        Self {
            items: page.items,
            has_more: page.has_more,
            stopped_at: None,
        }
    }

    /// A page of those that fit among the events down to one, where that was as far as the search went. A page
    /// that is full did not get there.
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
    /// Records events of one device in their order, each once by the id its sender gave, with its money, its
    /// credit and its figures. One answer per event.
    async fn accept_sdk_events(
        &self,
        arrival: SdkRequestContext,
        events: Vec<SdkEvent>,
    ) -> StoreResult<Vec<Acceptance>>;

    /// The log of an app in the caller's environment, newest first by the events' own time. Where no index leads to
    /// what is asked for, a page looks through so many events and no more
    /// ([`EventFilter::is_indexed`]).
    async fn events(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        filter: EventFilter,
        page: PageRequest,
    ) -> StoreResult<EventPage>;
}
