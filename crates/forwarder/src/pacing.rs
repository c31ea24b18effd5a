//! Rate limiting for requests.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Interval between requests for one cloud project. Google Ads (`network_b`) allows 300 requests
/// per minute and project, shared by all integrations that use the project.
const PROJECT_INTERVAL: Duration = Duration::from_millis(200);
/// Longest wait for a turn. If the wait would be longer, the queue is released.
const TURN_MAX: Duration = Duration::from_secs(5);
/// Number of projects after which old entries are dropped.
const PROJECTS_MAX: usize = 10_000;

/// Earliest time of each project's next request.
#[derive(Default)]
pub(crate) struct ProjectPacer {
    next: Mutex<HashMap<String, Instant>>,
}

impl ProjectPacer {
    /// Waits for the project's next turn.
    pub(crate) async fn wait_turn(&self, project: Option<&str>) {
        let Some(project) = project else {
            return;
        };
        tokio::time::sleep_until(self.reserve(project)).await;
    }

    /// Delays the project's next turn.
    pub(crate) fn delay(&self, project: &str, wait: Duration) {
        let until = Instant::now() + wait;
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = next.entry(project.to_owned()).or_insert(until);
        *turn = until.max(*turn);
    }

    /// Returns whether the project's next turn is too far away to wait for.
    pub(crate) fn is_delayed(&self, project: Option<&str>) -> bool {
        let next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = project.and_then(|project| next.get(project));
        turn.is_some_and(|turn| *turn > Instant::now() + TURN_MAX)
    }

    fn reserve(&self, project: &str) -> Instant {
        let now = Instant::now();
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if next.len() > PROJECTS_MAX {
            next.retain(|_, turn| *turn > now);
        }
        let turn = next.get(project).copied().unwrap_or(now).max(now);
        next.insert(project.to_owned(), turn + PROJECT_INTERVAL);
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn spaces_out_requests_of_one_project() {
        let projects = ProjectPacer::default();
        let started_at = Instant::now();
        for _ in 0..3 {
            projects.wait_turn(Some("one")).await;
        }
        assert_eq!(started_at.elapsed(), PROJECT_INTERVAL * 2);
        projects.wait_turn(Some("other")).await;
        projects.wait_turn(None).await;
        assert_eq!(
            started_at.elapsed(),
            PROJECT_INTERVAL * 2,
            "other projects do not wait"
        );
    }
}
