//! Accepts postbacks, many per transaction.
//!
//! Waiting postbacks are evaluated together, in order of arrival. Earlier postbacks are read with
//! one statement per table (`facts`), the domain rule evaluates one postback after another, and the
//! new ones are written at once (`write`). Nodes conflict only through unique constraints. When a
//! deduplication key or body is already stored, the batch is retried as a whole, and finally item
//! by item.

use super::facts::{self, PostbackHistory, WaitingPostbacks};
use super::write;
use crate::Failure;
use crate::batch_writer::{BatchItem, BatchWriter, ShardKey};
use crate::pool::Pool;
use crate::tx::{self, TransactionMode, Tx};
use std::sync::Arc;
use tributary_domain::report::postback::{
    PostbackCounting, PostbackCounts, PostbackDecision, ReceivedPostback, UnclaimedDecision,
    decide_postback, decide_unclaimed,
};
use tributary_domain::vocabulary::id::AppId;
use tributary_store::PostbackOutcome;

impl BatchItem for ReceivedPostback {
    fn shard_key(&self) -> ShardKey {
        ShardKey::Name(self.app_store_id())
    }
}

/// Starts the batch writer for postbacks.
pub(crate) fn batch_writer(pool: Arc<Pool>) -> BatchWriter<ReceivedPostback, PostbackOutcome> {
    let name = "accept_postback";
    BatchWriter::start(name, move |postbacks: Arc<[ReceivedPostback]>| {
        let pool = pool.clone();
        async move {
            tx::run(&pool, name, TransactionMode::Write, async move |tx| {
                accept(tx, &postbacks).await
            })
            .await
        }
    })
}

/// Stores postbacks for the apps with their App Store ids, or as unclaimed. Returns one outcome per
/// postback.
async fn accept(tx: &Tx, postbacks: &[ReceivedPostback]) -> Result<Vec<PostbackOutcome>, Failure> {
    let apps = facts::apps(tx, postbacks).await?;
    let app_of = |postback: &ReceivedPostback| apps.get(&postback.app_store_id()).copied();
    let unclaimed: Vec<&ReceivedPostback> = postbacks
        .iter()
        .filter(|postback| app_of(postback).is_none())
        .collect();
    let mut unclaimed = store_unclaimed(tx, &unclaimed).await?.into_iter();
    let claimed: Vec<(AppId, &ReceivedPostback)> = postbacks
        .iter()
        .filter_map(|postback| Some((app_of(postback)?, postback)))
        .collect();
    write::note_genuine(tx, &claimed).await?;
    let mut stored = store(tx, &claimed).await?.into_iter();
    let answer = |postback: &ReceivedPostback| {
        let outcomes = if app_of(postback).is_some() {
            &mut stored
        } else {
            &mut unclaimed
        };
        outcomes.next().unwrap_or(PostbackOutcome::Duplicate)
    };
    Ok(postbacks.iter().map(answer).collect())
}

/// Stores postbacks that have no app. Returns one outcome per postback.
async fn store_unclaimed(
    tx: &Tx,
    postbacks: &[&ReceivedPostback],
) -> Result<Vec<PostbackOutcome>, Failure> {
    let mut waiting = WaitingPostbacks::gather(tx, postbacks).await?;
    let mut new = Vec::new();
    let mut outcomes = Vec::new();
    for postback in postbacks {
        let bodies = waiting.bodies(postback);
        outcomes.push(match decide_unclaimed(postback, bodies) {
            UnclaimedDecision::Duplicate => PostbackOutcome::Duplicate,
            UnclaimedDecision::TooManyVariants => PostbackOutcome::Dropped,
            UnclaimedDecision::Waiting => {
                bodies.push(postback.body_digest());
                new.push(*postback);
                PostbackOutcome::Unclaimed
            }
        });
    }
    write::insert_unclaimed(tx, &new).await?;
    Ok(outcomes)
}

/// A postback to store for an app. `counting` is `None` if the postback conflicts with an earlier
/// one.
pub(super) struct DecidedPostback<'a> {
    pub(super) app: AppId,
    pub(super) postback: &'a ReceivedPostback,
    pub(super) counting: Option<PostbackCounting>,
}

/// Stores the new postbacks and their counts.
pub(super) async fn store(
    tx: &Tx,
    postbacks: &[(AppId, &ReceivedPostback)],
) -> Result<Vec<PostbackOutcome>, Failure> {
    if postbacks.is_empty() {
        return Ok(Vec::new());
    }
    let mut facts = PostbackHistory::gather(tx, postbacks).await?;
    let mut decided = Vec::new();
    let mut counts = PostbackCounts::default();
    let mut answers = Vec::new();
    for (app, postback) in postbacks.iter().copied() {
        let counting = match decide_postback(postback, &facts.before(app, postback)) {
            PostbackDecision::Duplicate => {
                answers.push(PostbackOutcome::Duplicate);
                continue;
            }
            PostbackDecision::TooManyVariants => {
                answers.push(PostbackOutcome::Dropped);
                continue;
            }
            PostbackDecision::First(counting) => Some(counting),
            PostbackDecision::Conflicting => None,
        };
        facts.add(app, postback, counting.is_some());
        if let Some(counting) = counting {
            counts.add(app, postback, counting);
        }
        decided.push(DecidedPostback {
            app,
            postback,
            counting,
        });
        answers.push(PostbackOutcome::Stored);
    }
    write::insert_postbacks(tx, &decided).await?;
    write::add_counts(tx, &counts).await?;
    Ok(answers)
}
