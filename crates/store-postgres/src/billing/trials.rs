//! Trials on hold.

use crate::Failure;
use crate::rows::{id, read_row, uuid};
use crate::tx::Tx;
use tributary_domain::access::Environment;
use tributary_domain::billing::Chain;
use tributary_domain::billing::hold::{Trial, TrialState};
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

    async fn due_trials(&self, now: Timestamp, limit: u32) -> Result<Vec<Chain>, Failure> {
        let rows = self
            .query(
                "select provider, chain, app_id from trials where state = 'held' and due_at <= $1
                 order by due_at limit $2",
                &[&now.as_millis(), &i64::from(limit)],
            )
            .await?;
        rows.iter()
            .map(|row| {
                let app = AppId::from_bytes(id(row, "app_id")?);
                Ok(read_row::<ChainRow>(row)?.read((app, Environment::Live))?)
            })
            .collect()
    }
}
