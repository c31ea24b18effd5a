//! How fast requests may follow each other.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// `network_b` takes 300 requests a minute from all integrations of a cloud project together.
const PROJECT_INTERVAL: Duration = Duration::from_millis(200);
/// Waiting longer for a turn than this is left to the queue.
const TURN_MAX: Duration = Duration::from_secs(5);
/// Projects that are remembered. Beyond it the oldest turn is long over.
const PROJECTS_MAX: usize = 10_000;

/// When the next request of each project may leave.
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

    /// The project's next turn is not before this.
    pub(crate) fn delay(&self, project: &str, wait: Duration) {
        let until = Instant::now() + wait;
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = next.entry(project.to_owned()).or_insert(until);
        *turn = until.max(*turn);
    }

    /// Whether the project's next turn is further off than a request should wait for it.
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
    async fn requests_of_one_project_keep_their_distance() {
        let projects = ProjectPacer::default();
        let begun = Instant::now();
        for _ in 0..3 {
            projects.wait_turn(Some("one")).await;
        }
        assert_eq!(begun.elapsed(), PROJECT_INTERVAL * 2);
        projects.wait_turn(Some("other")).await;
        projects.wait_turn(None).await;
        assert_eq!(begun.elapsed(), PROJECT_INTERVAL * 2, "others do not wait");
    }
}
