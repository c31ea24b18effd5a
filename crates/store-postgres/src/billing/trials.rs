//! Trials on hold.

use super::notifications::provider_of;
use crate::Failure;
use crate::rows::{id, uuid};
use crate::tx::Tx;
use tributary_domain::access::Environment;
use tributary_domain::billing::Chain;
use tributary_domain::billing::hold::{Trial, TrialState};
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::StoreError;

/// The trial of a subscription that is, or was, on hold.
pub(super) async fn find(tx: &Tx, chain: &Chain) -> Result<Option<Trial>, Failure> {
    let row = tx
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
            due_at: Timestamp::from_millis(row.try_get(0)?),
            state: TrialState::parse(row.try_get(1)?)
                .ok_or_else(|| StoreError::corrupt("trials", "state", chain.app))?,
        })
    })
    .transpose()
}

/// Puts a trial on hold. Of several starts of one subscription the earliest decides when it is due.
pub(super) async fn insert(tx: &Tx, chain: &Chain, due_at: Timestamp) -> Result<(), Failure> {
    tx.execute(
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
    Ok(())
}

/// Writes how a trial stands.
pub(super) async fn write_state(tx: &Tx, chain: &Chain, trial: Trial) -> Result<(), Failure> {
    tx.execute(
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

/// Trials on hold that are due, the longest ones first.
pub(super) async fn due(tx: &Tx, now: Timestamp, limit: u32) -> Result<Vec<Chain>, Failure> {
    let rows = tx
        .query(
            "select app_id, provider, chain from trials where state = 'held' and due_at <= $1
             order by due_at limit $2",
            &[&now.as_millis(), &i64::from(limit)],
        )
        .await?;
    rows.iter()
        .map(|row| {
            let app = AppId::from_bytes(id(row, 0)?);
            Ok(Chain {
                app,
                environment: Environment::Live,
                provider: provider_of(app, row.try_get(1)?)?,
                name: row.try_get(2)?,
            })
        })
        .collect()
}
