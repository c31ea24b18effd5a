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

use crate::batch::{Batches, Item};
use crate::pool::Pool;
use crate::tx::{self, Mode, Tx};
use crate::{Failure, PostgresStore};
use async_trait::async_trait;
use std::sync::Arc;
use tributary_domain::event::web::{Posted, WebAccepted, decide};
use tributary_domain::refusal::Refusal;
use tributary_store::{StoreResult, WebEvents};

/// Batches under way at a time: one is decided while the other is synced.
const BATCHES_AT_A_TIME: usize = 2;

/// What a post comes to. A refusal is a value here, since it undoes nothing of the others.
pub(crate) type Answer = Result<WebAccepted, Refusal>;

impl Item for Posted {}

/// Where posts are written in batches.
pub(crate) fn batches(pool: Arc<Pool>) -> Batches<Posted, Answer> {
    let name = "accept_web_event";
    Batches::start_several(name, BATCHES_AT_A_TIME, move |posts: Arc<[Posted]>| {
        let pool = pool.clone();
        async move {
            tx::run(&pool, name, Mode::WriteAfterReading, async move |tx| {
                accept(tx, &posts).await
            })
            .await
        }
    })
}

/// Records the posts that are accepted. One answer per post.
pub(crate) async fn accept(tx: &Tx, posts: &[Posted]) -> Result<Vec<Answer>, Failure> {
    let facts = facts::gather(tx, posts).await?;
    let decisions = decide(posts, &facts.known);
    // Boxed: so many statements under way at a time are large.
    Box::pin(write::all(tx, &facts, &decisions.changes)).await?;
    Ok(decisions.answers)
}

#[async_trait]
impl WebEvents for PostgresStore {
    async fn accept_web_event(&self, posted: Posted) -> StoreResult<WebAccepted> {
        Ok(self.web_events.write(posted).await??)
    }
}
