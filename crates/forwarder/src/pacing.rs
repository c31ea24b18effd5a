//! Rate limiting for requests that share a quota.

use crate::ForwarderParts;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;
use tributary_domain::forwarding::quota::{QuotaTurns, TURN_INTERVAL};
use tributary_domain::integration::Network;
use tributary_domain::vocabulary::digest::Digest;

/// Longest wait for a turn. If the wait would be longer, the queue is released.
const TURN_MAX: Duration = Duration::from_secs(5);
/// Number of projects after which old entries are dropped.
const PROJECTS_MAX: usize = 10_000;

/// This node's turns in the quotas of cloud projects. Only Google Ads (`network_b`) counts requests
/// per project.
#[derive(Default)]
pub(crate) struct ProjectPacer {
    projects: Mutex<HashMap<String, ProjectState>>,
}

/// State of one project's quota on this node.
struct ProjectState {
    /// Time before which no request is sent, because the network asked for it.
    delayed_until: Instant,
    /// The latest turn taken.
    latest: Instant,
    /// Turns that this node has reserved. Locked while more are reserved.
    reserved: Arc<AsyncMutex<Option<QuotaTurns>>>,
}

impl ProjectPacer {
    /// Waits for the project's next turn. A turn that comes during a delay is lost.
    pub(crate) async fn wait_turn(&self, parts: &ForwarderParts, project: Option<&str>) {
        let Some(project) = project else {
            return;
        };
        loop {
            self.wait_for_next(parts, project).await;
            let mut projects = self.lock();
            if entry(&mut projects, project).delayed_until <= Instant::now() {
                return;
            }
        }
    }

    async fn wait_for_next(&self, parts: &ForwarderParts, project: &str) {
        let (delayed_until, reserved) = {
            let mut projects = self.lock();
            let state = entry(&mut projects, project);
            (state.delayed_until, state.reserved.clone())
        };
        tokio::time::sleep_until(delayed_until).await;
        let turn = {
            let mut reserved = reserved.lock().await;
            let wait = next_wait(parts, project, &mut reserved).await;
            let now = Instant::now();
            let mut projects = self.lock();
            let state = entry(&mut projects, project);
            // Without the database, this node at least keeps to the interval.
            let turn =
                wait.map_or_else(|| now.max(state.latest + TURN_INTERVAL), |wait| now + wait);
            state.latest = turn;
            turn
        };
        tokio::time::sleep_until(turn).await;
    }

    /// Delays the project's next turn on this node. Other nodes learn it from their own responses.
    pub(crate) fn delay(&self, project: &str, wait: Duration) {
        let mut projects = self.lock();
        let state = entry(&mut projects, project);
        state.delayed_until = state.delayed_until.max(Instant::now() + wait);
    }

    /// Returns whether the project's next turn is too far away to wait for.
    pub(crate) fn is_delayed(&self, project: Option<&str>) -> bool {
        let projects = self.lock();
        let state = project.and_then(|project| projects.get(project));
        let latest = Instant::now() + TURN_MAX;
        state.is_some_and(|state| state.delayed_until.max(state.latest) > latest)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, ProjectState>> {
        self.projects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn entry<'a>(
    projects: &'a mut HashMap<String, ProjectState>,
    project: &str,
) -> &'a mut ProjectState {
    let now = Instant::now();
    if projects.len() > PROJECTS_MAX {
        // Keep projects that a request waits for: it holds another reference to their turns.
        projects.retain(|_, state| {
            state.delayed_until.max(state.latest) > now || Arc::strong_count(&state.reserved) > 1
        });
    }
    projects
        .entry(project.to_owned())
        .or_insert_with(|| ProjectState {
            delayed_until: now,
            latest: now.checked_sub(TURN_INTERVAL).unwrap_or(now),
            reserved: Arc::default(),
        })
}

/// Returns the time until the next turn, and reserves more turns if necessary. `None` if the database
/// is unavailable.
async fn next_wait(
    parts: &ForwarderParts,
    project: &str,
    reserved: &mut Option<QuotaTurns>,
) -> Option<Duration> {
    let now = parts.runtime.now();
    if let Some(turn) = reserved.as_mut().and_then(|turns| turns.take(now)) {
        return Some(turn.since(now));
    }
    let quota = Digest::of(format!("{} {project}", Network::B.as_str()).as_bytes());
    match parts.store.reserve_turns(quota, now).await {
        Ok(turns) => {
            let turn = reserved.insert(turns).take(now);
            turn.map(|turn| turn.since(now))
        }
        Err(error) => {
            tracing::debug!(%error, "failed to reserve turns; pacing this node only");
            None
        }
    }
}
