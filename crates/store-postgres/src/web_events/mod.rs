//! Verified web events and the payment ledger, many posted events per transaction.
//!
//! Waiting posts are evaluated together, in order of arrival (`domain::event::web::decide`). Facts
//! are read with one statement per table (`facts`), and the changes are written at once (`write`).
//! A refusal affects only its own post; the rest of the batch is written.
//!
//! Nodes can conflict in three places. Refunds of one payment wait for the payment's lock. A post
//! whose id another node is recording waits for that node and then reports a conflict. So does a
//! device's first payment while another node is recording a first payment of the same device. After
//! a conflict, the batch is retried as a whole, and finally post by post. This terminates, because
//! a single post can have each of these conflicts only once.
//!
//! A post may report or refund a payment that a billing provider reports as well. The billing events
//! are then settled again, which needs the lock on the app before all other locks. A batch with a
//! refund takes it, because the provider may report the refund at the same time. A batch that finds
//! a billed payment without having locked the app is retried with the lock.

mod facts;
mod write;

use crate::batch_writer::{BatchItem, BatchWriter, CONCURRENT_BATCHES, ShardKey};
use crate::pool::Pool;
use crate::tx::{self, TransactionMode, Tx};
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use facts::FactLocks;
pub(crate) use facts::find_refunds;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tributary_domain::event::web::{
    AcceptedWebEvent, WebEvent, WebEventKind, WebEventPreview, decide, preview,
};
use tributary_domain::refusal::Refusal;
use tributary_domain::vocabulary::id::AppId;
use tributary_recording::AppTable;
use tributary_store::{StoreResult, WebEvents};

/// The result of a post. A refusal is a value, because it must not roll back the other posts.
pub(crate) type WebEventResult = Result<AcceptedWebEvent, Refusal>;

impl BatchItem for WebEvent {
    fn shard_key(&self) -> ShardKey {
        ShardKey::App(self.app)
    }
}

/// Starts the batch writer for web events.
pub(crate) fn batch_writer(pool: Arc<Pool>) -> BatchWriter<WebEvent, WebEventResult> {
    let name = "accept_web_event";
    BatchWriter::start_concurrent(name, CONCURRENT_BATCHES, move |posts: Arc<[WebEvent]>| {
        let pool = pool.clone();
        async move {
            let needs_app_lock = AtomicBool::new(may_refund(&posts));
            tx::run(
                &pool,
                name,
                TransactionMode::PipelinedWrite,
                async move |tx| accept(tx, &posts, &needs_app_lock).await,
            )
            .await
        }
    })
}

/// Returns whether the posts contain a refund that may be accepted.
fn may_refund(posts: &[WebEvent]) -> bool {
    let mut verifiable = posts.iter().filter(|post| post.click.is_some());
    verifiable.any(|post| post.kind == WebEventKind::Refund)
}

/// Records the accepted posts. Returns one result per post. Sets `needs_app_lock` before a conflict
/// that only the lock on the app resolves.
pub(crate) async fn accept(
    tx: &Tx,
    posts: &[WebEvent],
    needs_app_lock: &AtomicBool,
) -> Result<Vec<WebEventResult>, Failure> {
    let is_app_locked = needs_app_lock.load(Ordering::Relaxed);
    if is_app_locked {
        let apps: BTreeSet<AppId> = posts.iter().map(|post| post.app).collect();
        for app in apps {
            tx.lock_app(app).await?;
        }
    }
    let locks = FactLocks::UntilCommit { is_app_locked };
    // Boxed because the futures of many concurrent statements are large.
    let facts = Box::pin(facts::gather(tx, posts, locks)).await?;
    let decisions = decide(posts, &facts.facts);
    Box::pin(write::write_changes(
        tx,
        &facts,
        &decisions.changes,
        needs_app_lock,
    ))
    .await?;
    Ok(decisions.answers)
}

#[async_trait]
impl WebEvents for PostgresStore {
    async fn accept_web_event(&self, post: WebEvent) -> StoreResult<AcceptedWebEvent> {
        Ok(self.write_batched(&self.web_events, post).await??)
    }

    async fn validate_web_event(&self, post: WebEvent) -> StoreResult<WebEventPreview> {
        self.read("validate_web_event", async move |tx| {
            let posts = std::slice::from_ref(&post);
            // Boxed because the futures of many concurrent statements are large.
            let found = Box::pin(facts::gather(tx, posts, FactLocks::None)).await?;
            Ok(preview(&post, &found.facts)?)
        })
        .await
    }
}
