//! Streams of tuples from and to the server.

use super::PostgresMoveError;
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use std::pin::pin;
use tokio_postgres::Transaction;
use tributary_store::transfer::{RowSum, TUPLES_HEADER, TUPLES_TRAILER, TupleScanner};

/// Copies tuples into a table.
pub(super) async fn copy_in(
    tx: &Transaction<'_>,
    table: &str,
    columns: &str,
    tuples: Vec<u8>,
) -> Result<(), PostgresMoveError> {
    let sql = format!("copy {table} ({columns}) from stdin (format binary)");
    let mut sink = pin!(tx.copy_in::<_, Bytes>(&sql).await?);
    sink.send(Bytes::from_static(TUPLES_HEADER)).await?;
    sink.send(Bytes::from(tuples)).await?;
    let trailer = Bytes::copy_from_slice(&TUPLES_TRAILER);
    sink.send(trailer).await?;
    sink.as_mut().finish().await?;
    Ok(())
}

/// Sums the rows of a query.
pub(super) async fn sum_of(tx: &Transaction<'_>, query: &str) -> Result<RowSum, PostgresMoveError> {
    let mut sum = RowSum::default();
    let add = |tuple: &[u8]| {
        sum.add(tuple);
        Ok::<_, PostgresMoveError>(())
    };
    for_each_tuple(tx, query, add).await?;
    Ok(sum)
}

/// Calls `each` with every row of a query.
pub(super) async fn for_each_tuple<E: From<PostgresMoveError>>(
    tx: &Transaction<'_>,
    query: &str,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let sql = format!("copy ({query}) to stdout (format binary)");
    let stream = tx.copy_out(&sql).await.map_err(PostgresMoveError::from)?;
    let mut stream = pin!(stream);
    let mut scanner = TupleScanner::default();
    while let Some(bytes) = stream.next().await {
        scanner.scan(&bytes.map_err(PostgresMoveError::from)?, &mut each)?;
    }
    Ok(())
}
