//! Postbacks of SKAdNetwork and AdAttributionKit: many to a transaction.
//!
//! What waits together is decided together, in the order of arrival: what came before is read for all of them, a
//! statement a table (`facts`), the rule decides one after the other, each on what the ones before it came to, and what
//! is new is written at once (`write`). Nodes meet in the unique constraints alone: whoever finds a key or a body taken
//! when all is decided reads again and decides again, and in the end one by one.

mod facts;
mod find;
mod stats;
mod sweep;
mod write;

pub(crate) use sweep::claim;

use crate::batch_writer::{BatchItem, BatchWriter};
use crate::pool::Pool;
use crate::rows::{Purpose, find_app};
use crate::tx::{self, Mode, Tx};
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use facts::PostbackHistory;
use std::sync::Arc;
use tributary_domain::access::{AnalyticsRead, AppsRead, Authorized, Environment};
use tributary_domain::report::postback::{
    Counting, PostbackCounts, PostbackDecision, ReceivedPostback, decide_postback,
};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::page::PageRequest;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::{
    PostbackFilter, PostbackOutcome, PostbackPage, PostbackReportQuery, PostbackStats, Postbacks,
    StoreResult,
};

impl BatchItem for ReceivedPostback {}

/// Where postbacks are written in batches.
pub(crate) fn batch_writer(pool: Arc<Pool>) -> BatchWriter<ReceivedPostback, PostbackOutcome> {
    let name = "accept_postback";
    BatchWriter::start(name, move |arrivals: Arc<[ReceivedPostback]>| {
        let pool = pool.clone();
        async move {
            tx::run(&pool, name, Mode::Write, async move |tx| {
                accept(tx, &arrivals).await
            })
            .await
        }
    })
}

/// Stores postbacks for the apps that have their App Store ids, or for whoever gets them. One answer each.
async fn accept(tx: &Tx, arrivals: &[ReceivedPostback]) -> Result<Vec<PostbackOutcome>, Failure> {
    let apps = facts::apps(tx, arrivals).await?;
    let app_of = |arrival: &ReceivedPostback| apps.get(&arrival.app_store_id()).copied();
    let unclaimed: Vec<&ReceivedPostback> = arrivals
        .iter()
        .filter(|arrival| app_of(arrival).is_none())
        .collect();
    let kept = write::insert_unclaimed(tx, &unclaimed).await?;
    let claimed: Vec<(AppId, &ReceivedPostback)> = arrivals
        .iter()
        .filter_map(|arrival| Some((app_of(arrival)?, arrival)))
        .collect();
    let mut stored = store(tx, &claimed).await?.into_iter();
    let answer = |arrival: &ReceivedPostback| {
        if app_of(arrival).is_some() {
            return stored.next().unwrap_or(PostbackOutcome::Duplicate);
        }
        if kept.contains(&arrival.id) {
            PostbackOutcome::Unclaimed
        } else {
            PostbackOutcome::Duplicate
        }
    };
    Ok(arrivals.iter().map(answer).collect())
}

/// A postback that is to be stored: whose it is, and when it counts; nothing for one that conflicts.
struct DecidedPostback<'a> {
    app: AppId,
    arrival: &'a ReceivedPostback,
    counting: Option<Counting>,
}

/// Stores what is new of these, with what it counts.
async fn store(
    tx: &Tx,
    arrivals: &[(AppId, &ReceivedPostback)],
) -> Result<Vec<PostbackOutcome>, Failure> {
    if arrivals.is_empty() {
        return Ok(Vec::new());
    }
    let mut facts = PostbackHistory::gather(tx, arrivals).await?;
    let mut decided = Vec::new();
    let mut counts = PostbackCounts::default();
    let mut answers = Vec::new();
    for (app, arrival) in arrivals.iter().copied() {
        let counting = match decide_postback(arrival, &facts.before(app, arrival)) {
            PostbackDecision::Duplicate => {
                answers.push(PostbackOutcome::Duplicate);
                continue;
            }
            PostbackDecision::First(counting) => Some(counting),
            PostbackDecision::Conflicting => None,
        };
        facts.add(app, arrival, counting.is_some());
        if let Some(counting) = counting {
            counts.add(app, arrival, counting);
        }
        decided.push(DecidedPostback {
            app,
            arrival,
            counting,
        });
        answers.push(PostbackOutcome::Stored);
    }
    write::insert_postbacks(tx, &decided).await?;
    write::add_counts(tx, &counts).await?;
    Ok(answers)
}

#[async_trait]
impl Postbacks for PostgresStore {
    async fn accept_postback(&self, arrival: ReceivedPostback) -> StoreResult<PostbackOutcome> {
        self.postbacks.write(arrival).await
    }

    async fn postbacks(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        filter: PostbackFilter,
        page: PageRequest,
    ) -> StoreResult<PostbackPage> {
        let organization = caller.organization();
        let is_live = caller.environment() == Environment::Live;
        self.read("postbacks", async move |tx| {
            let app = find_app(tx, organization, app, Purpose::Reading).await?;
            find::find_page(tx, &app, &filter, page, is_live).await
        })
        .await
    }

    async fn postback_stats(
        &self,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        question: PostbackReportQuery,
    ) -> StoreResult<Vec<PostbackStats>> {
        let organization = caller.organization();
        let is_live = caller.environment() == Environment::Live;
        self.read("postback_stats", async move |tx| {
            let app = find_app(tx, organization, app, Purpose::Reading).await?;
            if !is_live {
                return Ok(Vec::new());
            }
            stats::find(tx, &app, &question).await
        })
        .await
    }

    async fn claim_postbacks(&self, limit: u32) -> StoreResult<u64> {
        self.write("claim_postbacks", async move |tx| {
            sweep::claim_all(tx, limit).await
        })
        .await
    }

    async fn remove_postbacks(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.write("remove_postbacks", async move |tx| {
            sweep::remove(tx, before, limit).await
        })
        .await
    }

    async fn remove_unclaimed_postbacks(&self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.write("remove_unclaimed_postbacks", async move |tx| {
            sweep::remove_unclaimed(tx, before, limit).await
        })
        .await
    }
}
