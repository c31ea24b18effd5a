//! What ads cost, in a report. Costs are told by day, network and campaign; whatever else figures are told apart by,
//! nobody knows the cost of.

use super::range::{Range, Stretch};
use crate::error::ApiError;
use crate::state::ApiState;
use tributary_domain::access::{AnalyticsRead, Authorized, Environment};
use tributary_domain::exchange::Day;
use tributary_domain::report::{Dimension, StatsQuestion, TimeUnit};
use tributary_domain::vocabulary::id::AppId;
use tributary_store::CostSum;

/// The costs of an app in a range.
#[derive(Debug, Default)]
pub(crate) struct Costs(Vec<CostSum>);

impl Costs {
    /// Reads them.
    pub(crate) async fn load(
        state: &ApiState,
        caller: &Authorized<AnalyticsRead>,
        app: AppId,
        range: &Range,
    ) -> Result<Self, ApiError> {
        let found = state
            .store
            .cost_sums(caller, vec![app], range.from, range.to);
        let sums = found.await?.into_iter().map(|(_, sum)| sum);
        Ok(Self(sums.collect()))
    }

    /// Whether the rows of a question have a cost each.
    pub(crate) fn are_told_by(
        environment: Environment,
        unit: Option<TimeUnit>,
        question: &StatsQuestion,
    ) -> bool {
        let told = [Dimension::Network, Dimension::Campaign];
        let named = question.dimensions();
        environment == Environment::Live
            && unit != Some(TimeUnit::Hour)
            && named.iter().all(|dimension| told.contains(dimension))
    }

    /// All of them together.
    pub(crate) fn total(&self) -> i64 {
        self.0.iter().map(|cost| cost.usd_micros).sum()
    }

    /// Those that fit a question: in which stretch, under which values, how much.
    pub(crate) fn rows(
        &self,
        stretches: &[Stretch],
        question: &StatsQuestion,
    ) -> Vec<(usize, Vec<String>, i64)> {
        let fits = |cost: &&CostSum| {
            let filters = question.filters.iter();
            filters
                .clone()
                .all(|(dimension, wanted)| value(cost, *dimension) == wanted)
        };
        let row = |cost: &CostSum| {
            let values = question.by.iter().map(|one| value(cost, *one).to_owned());
            let stretch = stretch_of(stretches, cost.day)?;
            Some((stretch, values.collect(), cost.usd_micros))
        };
        self.0.iter().filter(fits).filter_map(row).collect()
    }
}

fn value(cost: &CostSum, dimension: Dimension) -> &str {
    match dimension {
        Dimension::Campaign => &cost.campaign,
        _ => &cost.network,
    }
}

fn stretch_of(stretches: &[Stretch], day: Day) -> Option<usize> {
    stretches
        .iter()
        .position(|stretch| (stretch.from..=stretch.to).contains(&day))
}
