//! Rows of cost sources.

use super::columns::row;
use super::integration::{credentials_from_json, credentials_to_json};
use super::{from_json, to_json};
use crate::StoreError;
use serde::{Deserialize, Serialize};
use tributary_domain::cost_source::{CostSource, PullProblem, PullState, REPORTING_NETWORKS};
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::day::Day;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::revision::Revision;
use tributary_domain::vocabulary::time::Timestamp;

const TABLE: &str = "cost_sources";

row! {
    /// A row of `cost_sources`.
    #[derive(Debug, Clone)]
    #[expect(missing_docs, reason = "columns")]
    pub struct CostSourceRow {
        pub app_id: [u8; 16],
        pub network: String,
        pub enabled: bool,
        pub settings: String,
        pub credentials: String,
        pub due_at: Option<i64>,
        pub last_pull_at: Option<i64>,
        pub last_success_at: Option<i64>,
        pub pulled_until: Option<i32>,
        pub failures: i64,
        pub problem: Option<String>,
        pub updated_at: i64,
        pub revision: i64,
    }
}

#[derive(Serialize, Deserialize)]
struct StoredProblem {
    code: String,
    message: String,
    is_refusal: bool,
}

impl CostSourceRow {
    /// Converts a cost source to columns.
    pub fn write(source: &CostSource) -> Self {
        let pulls = &source.pulls;
        let problem = |problem: &PullProblem| {
            to_json(&StoredProblem {
                code: problem.code.clone(),
                message: problem.message.clone(),
                is_refusal: problem.is_refusal,
            })
        };
        Self {
            app_id: *source.app.as_bytes(),
            network: source.network.as_str().to_owned(),
            enabled: source.enabled,
            settings: to_json(&source.settings),
            credentials: credentials_to_json(&source.credentials),
            due_at: pulls.due_at.map(Timestamp::as_millis),
            last_pull_at: pulls.last_pull_at.map(Timestamp::as_millis),
            last_success_at: pulls.last_success_at.map(Timestamp::as_millis),
            pulled_until: pulls.pulled_until.map(Day::as_days),
            failures: i64::from(pulls.failures),
            problem: pulls.problem.as_ref().map(problem),
            updated_at: source.updated_at.map_or(0, Timestamp::as_millis),
            revision: source.revision.number(),
        }
    }

    /// Reads the cost source.
    pub fn read(self) -> Result<CostSource, StoreError> {
        let app = AppId::from_bytes(self.app_id);
        let corrupt = |column| StoreError::corrupt(TABLE, column, app);
        let problem = |text: String| {
            let stored: StoredProblem = from_json(TABLE, "problem", app, &text)?;
            Ok::<_, StoreError>(PullProblem {
                code: stored.code,
                message: stored.message,
                is_refusal: stored.is_refusal,
            })
        };
        Ok(CostSource {
            app,
            network: Network::parse(&self.network).ok_or_else(|| corrupt("network"))?,
            enabled: self.enabled,
            settings: from_json(TABLE, "settings", app, &self.settings)?,
            credentials: credentials_from_json(TABLE, app, &self.credentials)?,
            pulls: PullState {
                due_at: self.due_at.map(Timestamp::from_millis),
                last_pull_at: self.last_pull_at.map(Timestamp::from_millis),
                last_success_at: self.last_success_at.map(Timestamp::from_millis),
                pulled_until: self.pulled_until.map(Day::from_days),
                failures: u32::try_from(self.failures).unwrap_or(u32::MAX),
                problem: self.problem.map(problem).transpose()?,
            },
            updated_at: Some(Timestamp::from_millis(self.updated_at)),
            revision: Revision::from_number(self.revision),
        })
    }

    /// Returns the cost sources of an app, with default settings for those that are not stored.
    pub fn read_all(app: AppId, rows: Vec<Self>) -> Result<Vec<CostSource>, StoreError> {
        let stored = rows
            .into_iter()
            .map(Self::read)
            .collect::<Result<Vec<_>, _>>()?;
        let of = |network| stored.iter().find(|one| one.network == network).cloned();
        Ok(REPORTING_NETWORKS
            .into_iter()
            .map(|network| of(network).unwrap_or_else(|| CostSource::new(app, network)))
            .collect())
    }
}
