//! Trials on hold.

use crate::Failure;
use crate::due_work::earliest;
use crate::rows::{id, read_row, uuid};
use crate::tx::Tx;
use tokio_postgres::Row;
use tributary_domain::access::Environment;
use tributary_domain::billing::Chain;
use tributary_domain::billing::hold::{Trial, TrialState};
use tributary_domain::due_work::WorkKind;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_recording::TrialTable;
use tributary_store::StoreError;
use tributary_store::records::ChainRow;

impl TrialTable for Tx {
    async fn trial(&self, chain: &Chain) -> Result<Option<Trial>, Failure> {
        let row = self
        .query_opt(
            "select due_at, state from trials where app_id = $1 and provider = $2 and chain = $3",
            &[
                &uuid(chain.app.as_bytes()),
                &chain.provider.as_str(),
                &chain.name,
            ],
        )
        .await?;
        row.map(|row| {
            Ok(Trial {
                due_at: Timestamp::from_millis(row.try_get("due_at")?),
                state: TrialState::parse(row.try_get("state")?)
                    .ok_or_else(|| StoreError::corrupt("trials", "state", chain.app))?,
            })
        })
        .transpose()
    }

    async fn hold_trial(&self, chain: &Chain, due_at: Timestamp) -> Result<(), Failure> {
        self.execute(
            "insert into trials as stored (app_id, provider, chain, due_at, state)
         values ($1, $2, $3, $4, $5)
         on conflict (app_id, provider, chain)
         do update set due_at = least(stored.due_at, excluded.due_at)",
            &[
                &uuid(chain.app.as_bytes()),
                &chain.provider.as_str(),
                &chain.name,
                &due_at.as_millis(),
                &TrialState::Held.as_str(),
            ],
        )
        .await?;
        self.hint(WorkKind::Trials, chain.app, due_at);
        Ok(())
    }

    async fn write_trial(&self, chain: &Chain, trial: Trial) -> Result<(), Failure> {
        self.execute(
            "update trials set state = $4 where app_id = $1 and provider = $2 and chain = $3",
            &[
                &uuid(chain.app.as_bytes()),
                &chain.provider.as_str(),
                &chain.name,
                &trial.state.as_str(),
            ],
        )
        .await?;
        Ok(())
    }
}

/// Finds due trials on hold of all apps, oldest first.
pub(super) async fn find_due(tx: &Tx, now: Timestamp, limit: u32) -> Result<Vec<Chain>, Failure> {
    let sql = "select provider, chain, app_id from trials where state = 'held' and due_at <= $1
               order by due_at limit $2";
    let rows = tx
        .query(sql, &[&now.as_millis(), &i64::from(limit)])
        .await?;
    rows.iter().map(read_chain).collect()
}

/// Finds due trials on hold of an app, oldest first.
pub(super) async fn find_due_of(
    tx: &Tx,
    app: AppId,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Chain>, Failure> {
    let sql = "select provider, chain, app_id from trials
               where app_id = $1 and state = 'held' and due_at <= $2 order by due_at limit $3";
    let app = uuid(app.as_bytes());
    let rows = tx
        .query(sql, &[&app, &now.as_millis(), &i64::from(limit)])
        .await?;
    rows.iter().map(read_chain).collect()
}

/// Returns the due time of an app's earliest trial on hold.
pub(super) async fn earliest_due(tx: &Tx, app: AppId) -> Result<Option<i64>, Failure> {
    let sql = "select min(due_at) from trials where app_id = $1 and state = 'held'";
    earliest(tx, sql, app).await
}

fn read_chain(row: &Row) -> Result<Chain, Failure> {
    let app = AppId::from_bytes(id(row, "app_id")?);
    Ok(read_row::<ChainRow>(row)?.read((app, Environment::Live))?)
}
