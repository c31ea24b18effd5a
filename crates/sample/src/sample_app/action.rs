//! Sample actions, as applied to a store.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use tributary_domain::attribution::ad_services::{AdServices, AdServicesRecord};
use tributary_domain::billing::IncomingNotification;
use tributary_domain::click::Click;
use tributary_domain::event::sdk::{SdkEvent, SdkRequestContext};
use tributary_domain::event::web::WebEvent;
use tributary_domain::install::ConfigureCommand;
use tributary_domain::report::postback;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{LeasedToken, Store, StoreError, StoreResult, TokenOutcome};

/// Number of concurrent actions. Enough that a sync of the disk is shared by many, and few enough
/// that a slow machine commits all of them in the ten seconds that the store waits for a commit.
const CONCURRENT_ACTIONS: usize = 400;
/// AdServices tokens leased at a time.
const TOKENS_PER_LEASE: u32 = 500;
/// Duration of a lease. No other worker competes for it.
const LEASE: Duration = Duration::from_secs(30);

/// One action in the sample.
#[derive(Debug, Clone)]
pub enum SampleAction {
    /// A click on a link.
    Click(Box<Click>),
    /// The `configure` call at a first open.
    Configure(Box<ConfigureCommand>),
    /// Apple's responses for all pending AdServices tokens.
    Apple(Timestamp),
    /// SDK events from one device.
    Events(Box<(SdkRequestContext, Vec<SdkEvent>)>),
    /// A website event.
    Web(Box<WebEvent>),
    /// A postback from Apple.
    Postback(Box<postback::ReceivedPostback>),
    /// A notification from a billing provider.
    Billing(Box<IncomingNotification>),
}

impl SampleAction {
    /// Returns the time of the action.
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Click(click) => click.clicked_at,
            Self::Configure(command) => command.at,
            Self::Apple(at) => *at,
            Self::Events(sent) => sent.0.received_at,
            Self::Web(posted) => posted.received_at,
            Self::Postback(arrival) => arrival.received_at,
            Self::Billing(arrival) => arrival.received_at,
        }
    }

    /// Applies the action to a store.
    pub async fn apply(self, store: &dyn Store) -> StoreResult<()> {
        match self {
            Self::Click(click) => store.record_click(*click).await,
            Self::Configure(command) => store.configure(*command).await.map(drop),
            Self::Apple(at) => answer_tokens(store, at).await,
            Self::Events(sent) => {
                let (arrival, events) = *sent;
                store.accept_sdk_events(arrival, events).await.map(drop)
            }
            Self::Web(posted) => store.accept_web_event(*posted).await.map(drop),
            Self::Postback(arrival) => store.accept_postback(*arrival).await.map(drop),
            Self::Billing(arrival) => store.accept_notification(*arrival).await.map(drop),
        }
    }

    /// Returns the number of events in the action.
    pub fn events(&self) -> u64 {
        match self {
            Self::Click(_) | Self::Apple(_) | Self::Postback(_) => 0,
            Self::Configure(_) | Self::Web(_) | Self::Billing(_) => 1,
            Self::Events(sent) => sent.1.len() as u64,
        }
    }
}

/// Applies many actions concurrently, so that the store commits them in batches. Their order is not
/// defined.
pub async fn apply_all(store: &Arc<dyn Store>, actions: Vec<SampleAction>) -> StoreResult<()> {
    let actions = Arc::new(Mutex::new(actions.into_iter()));
    let mut tasks: JoinSet<StoreResult<()>> = JoinSet::new();
    for _ in 0..CONCURRENT_ACTIONS {
        let (store, actions) = (store.clone(), actions.clone());
        tasks.spawn(async move {
            let next = || actions.lock().ok().and_then(|mut actions| actions.next());
            while let Some(action) = next() {
                action.apply(&*store).await?;
            }
            Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.map_err(|error| StoreError::unavailable("take_all", error))??;
    }
    Ok(())
}

/// Time in which Apple answers a token.
const ANSWERED_AFTER: Duration = Duration::from_secs(5);

/// Stores a final result for each pending token: its install came from a tap on an ad. All tokens of a
/// day are answered at once, but each as of a few seconds after it was sent.
async fn answer_tokens(store: &dyn Store, at: Timestamp) -> StoreResult<()> {
    let until = at.plus(LEASE);
    loop {
        let leased = store
            .lease_ad_services_tokens(at, until, TOKENS_PER_LEASE)
            .await?;
        if leased.is_empty() {
            return Ok(());
        }
        for lease in leased {
            let outcome = TokenOutcome::Final(AdServices::Tap(Box::new(record(&lease))));
            let answered_at = lease.received_at.plus(ANSWERED_AFTER).min(at);
            store
                .settle_ad_services_token(lease, outcome, answered_at)
                .await?;
        }
    }
}

fn record(lease: &LeasedToken) -> AdServicesRecord {
    let campaign = lease.token.bytes().map(u64::from).sum::<u64>() % 3;
    AdServicesRecord {
        org_id: Some("40669820".to_owned()),
        campaign_id: Some(format!("{}", 542_370_540 + campaign)),
        ad_group_id: Some(format!("{}", 542_317_090 + campaign)),
        keyword_id: Some(format!("{}", 87_675_430 + campaign)),
        ..AdServicesRecord::default()
    }
}
