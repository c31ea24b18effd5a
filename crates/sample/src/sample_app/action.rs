//! What happens, as a store takes it.

use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use tributary_domain::attribution::ad_services::{AdServices, AdServicesRecord};
use tributary_domain::click::Click;
use tributary_domain::event::sdk::{SdkEvent, SdkRequestContext};
use tributary_domain::event::web::WebEvent;
use tributary_domain::install::ConfigureCommand;
use tributary_domain::report::postback;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{LeasedToken, Store, StoreError, StoreResult, TokenOutcome};

/// Steps that wait at a time: more than a batch of either store takes, so that the next one is full as well.
const AT_A_TIME: usize = 2_000;
/// Tokens that Apple is asked about at a time.
const TOKENS_AT_A_TIME: u32 = 500;
/// For how long they are leased. Nobody else asks.
const LEASE: Duration = Duration::from_secs(30);

/// Something that happens.
#[derive(Debug, Clone)]
pub enum SampleAction {
    /// A tap on a link.
    Click(Box<Click>),
    /// A first open.
    Configure(Box<ConfigureCommand>),
    /// Apple tells of the ads behind the tokens that are waiting.
    Apple(Timestamp),
    /// Events of one device.
    Events(Box<(SdkRequestContext, Vec<SdkEvent>)>),
    /// A website event.
    Web(Box<WebEvent>),
    /// A postback of Apple's.
    Postback(Box<postback::ReceivedPostback>),
}

impl SampleAction {
    /// When it arrives.
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Click(click) => click.clicked_at,
            Self::Configure(command) => command.at,
            Self::Apple(at) => *at,
            Self::Events(sent) => sent.0.received_at,
            Self::Web(posted) => posted.received_at,
            Self::Postback(arrival) => arrival.received_at,
        }
    }

    /// Hands it to a store.
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
        }
    }

    /// How many events it is.
    pub fn events(&self) -> u64 {
        match self {
            Self::Click(_) | Self::Apple(_) | Self::Postback(_) => 0,
            Self::Configure(_) | Self::Web(_) => 1,
            Self::Events(sent) => sent.1.len() as u64,
        }
    }
}

/// Hands many to a store, so many at a time that it commits them in batches. They come in no order.
pub async fn apply_all(store: &Arc<dyn Store>, steps: Vec<SampleAction>) -> StoreResult<()> {
    let steps = Arc::new(Mutex::new(steps.into_iter()));
    let mut tasks: JoinSet<StoreResult<()>> = JoinSet::new();
    for _ in 0..AT_A_TIME {
        let (store, steps) = (store.clone(), steps.clone());
        tasks.spawn(async move {
            let next = || steps.lock().ok().and_then(|mut steps| steps.next());
            while let Some(step) = next() {
                step.apply(&*store).await?;
            }
            Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.map_err(|error| StoreError::unavailable("take_all", error))??;
    }
    Ok(())
}

/// Redeems the tokens that are waiting: a tap on an ad led to each of them.
async fn answer_tokens(store: &dyn Store, at: Timestamp) -> StoreResult<()> {
    let until = at.plus(LEASE);
    loop {
        let leased = store
            .lease_ad_services_tokens(at, until, TOKENS_AT_A_TIME)
            .await?;
        if leased.is_empty() {
            return Ok(());
        }
        for lease in leased {
            let outcome = TokenOutcome::Final(AdServices::Tap(Box::new(record(&lease))));
            store.settle_ad_services_token(lease, outcome, at).await?;
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
