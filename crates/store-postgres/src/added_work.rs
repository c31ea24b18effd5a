//! Work that a transaction adds for the workers.

use crate::due_work::Hints;
use crate::pool::Pool;
use std::collections::BTreeSet;
use tributary_domain::due_work::WorkKind;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// Work that a transaction adds. Dropping it tells the workers, also if the outcome of the commit is
/// unknown or the caller stops waiting for it. A hint without work is harmless.
pub(crate) struct AddedWork<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) counted: BTreeSet<AppId>,
    pub(crate) hints: Hints,
}

impl Drop for AddedWork<'_> {
    fn drop(&mut self) {
        let counted = std::mem::take(&mut self.counted);
        if !counted.is_empty() {
            note_counted(self.pool, counted, &self.hints);
        }
        self.pool.due_work.add(&self.hints);
    }
}

/// Notes apps with increments to merge. On a distributed database, a node that does not merge leaves
/// hints for those that do.
fn note_counted(pool: &Pool, apps: BTreeSet<AppId>, hints: &Hints) {
    if pool.is_distributed() && !pool.options.merges_increments {
        for app in apps {
            hints.add(WorkKind::Increments, app, Timestamp::from_millis(0), None);
        }
    } else {
        pool.pending_apps.add(apps);
    }
}
