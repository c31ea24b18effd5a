//! Verified website events and the ledger of payments: many posts to a transaction.
//!
//! The posts that wait together are decided together, in the order of their arrival (`domain::event::web::decide`):
//! facts are read for all of them, a statement a table (`facts`), and the changes are written at once (`write`). A
//! refusal is the answer to its own post: nothing of it is written, and the other posts of the batch are kept.
//!
//! Nodes meet in three places. Refunds of one payment come one after the other by the payment's lock, from whichever
//! devices they are. Who sends an id that another node is just recording, or the first payment of a device that has
//! just made one there, waits for that node and finds itself overtaken when all is decided: then the batch is decided
//! again, and in the end one by one. That ends, since a post alone can lose its id only once, and its device's first
//! payment only once.

mod facts;
mod write;

use crate::batch_writer::{BatchItem, BatchWriter};
use crate::pool::Pool;
use crate::tx::{self, Mode, Tx};
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use std::sync::Arc;
use tributary_domain::event::web::{AcceptedWebEvent, WebEvent, decide};
use tributary_domain::refusal::Refusal;
use tributary_store::{StoreResult, WebEvents};

/// Batches under way at a time: one is decided while the other is synced.
const CONCURRENT_BATCHES: usize = 2;

/// What a post comes to. A refusal is a value here, since it undoes nothing of the others.
pub(crate) type WebEventAnswer = Result<AcceptedWebEvent, Refusal>;

impl BatchItem for WebEvent {}

/// Where posts are written in batches.
pub(crate) fn batch_writer(pool: Arc<Pool>) -> BatchWriter<WebEvent, WebEventAnswer> {
    let name = "accept_web_event";
    BatchWriter::start_concurrent(name, CONCURRENT_BATCHES, move |posts: Arc<[WebEvent]>| {
        let pool = pool.clone();
        async move {
            tx::run(&pool, name, Mode::PipelinedWrite, async move |tx| {
                accept(tx, &posts).await
            })
            .await
        }
    })
}

/// Records the posts that are accepted. One answer per post.
pub(crate) async fn accept(tx: &Tx, posts: &[WebEvent]) -> Result<Vec<WebEventAnswer>, Failure> {
    let facts = facts::gather(tx, posts).await?;
    let decisions = decide(posts, &facts.facts);
    // Boxed: so many statements under way at a time are large.
    Box::pin(write::write_changes(tx, &facts, &decisions.changes)).await?;
    Ok(decisions.answers)
}

#[async_trait]
impl WebEvents for PostgresStore {
    async fn accept_web_event(&self, posted: WebEvent) -> StoreResult<AcceptedWebEvent> {
        Ok(self.web_events.write(posted).await??)
    }
}
