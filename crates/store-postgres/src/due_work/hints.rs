//! Hints in memory.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tributary_domain::due_work::WorkKind;
use tributary_domain::vocabulary::id::AppId;
use tributary_domain::vocabulary::time::Timestamp;

/// When to look at an app's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hint {
    pub(super) due_at: Timestamp,
    /// `None` keeps what is stored.
    pub(super) blocked_until: Option<Timestamp>,
}

impl Hint {
    /// Adds a later hint. The earliest due time counts, and the last block.
    fn add(&mut self, later: Self) {
        self.due_at = self.due_at.min(later.due_at);
        self.blocked_until = later.blocked_until.or(self.blocked_until);
    }
}

type HintMap = BTreeMap<(WorkKind, AppId), Hint>;

/// Hints that are not stored yet.
#[derive(Debug, Default)]
pub(crate) struct Hints(Mutex<HintMap>);

impl Hints {
    fn lock(&self) -> MutexGuard<'_, HintMap> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a hint.
    pub(crate) fn add(
        &self,
        kind: WorkKind,
        app: AppId,
        due_at: Timestamp,
        blocked_until: Option<Timestamp>,
    ) {
        let hint = Hint {
            due_at,
            blocked_until,
        };
        add_all(&mut self.lock(), [((kind, app), hint)]);
    }

    /// Moves other hints to the end of these. Returns whether there were any.
    pub(super) fn append(&self, later: &Self) -> bool {
        let later = std::mem::take(&mut *later.lock());
        let has_any = !later.is_empty();
        add_all(&mut self.lock(), later);
        has_any
    }

    /// Takes all hints. Unless they are forgotten, they come back.
    pub(super) fn take(&self) -> TakenHints<'_> {
        TakenHints {
            hints: std::mem::take(&mut *self.lock()),
            from: self,
        }
    }
}

fn add_all(hints: &mut HintMap, later: impl IntoIterator<Item = ((WorkKind, AppId), Hint)>) {
    for (key, hint) in later {
        hints
            .entry(key)
            .and_modify(|earlier| earlier.add(hint))
            .or_insert(hint);
    }
}

/// Hints that are being stored. Puts them back when dropped, so that a failed or abandoned attempt
/// loses none.
pub(super) struct TakenHints<'a> {
    hints: HintMap,
    from: &'a Hints,
}

impl TakenHints<'_> {
    /// Returns the hints in key order.
    pub(super) fn sorted(&self) -> Vec<(WorkKind, AppId, Hint)> {
        let hints = self.hints.iter();
        hints
            .map(|((kind, app), hint)| (*kind, *app, *hint))
            .collect()
    }

    /// Drops the hints, because they are stored.
    pub(super) fn forget(mut self) {
        self.hints.clear();
    }
}

impl Drop for TakenHints<'_> {
    fn drop(&mut self) {
        let mut all = std::mem::take(&mut self.hints);
        let mut later = self.from.lock();
        add_all(&mut all, std::mem::take(&mut *later));
        *later = all;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: WorkKind = WorkKind::Trials;

    fn app() -> AppId {
        AppId::from_bytes([7; 16])
    }

    fn add(hints: &Hints, due_at: i64, blocked_until: Option<i64>) {
        let time = Timestamp::from_millis;
        hints.add(KIND, app(), time(due_at), blocked_until.map(time));
    }

    fn only(hints: &Hints) -> (i64, Option<i64>) {
        let taken = hints.take();
        let [(KIND, _, hint)] = taken.sorted()[..] else {
            panic!("{:?}", taken.hints);
        };
        let blocked_until = hint.blocked_until.map(Timestamp::as_millis);
        (hint.due_at.as_millis(), blocked_until)
    }

    #[test]
    fn the_earliest_due_time_and_the_last_block_count() {
        let hints = Hints::default();
        add(&hints, 20, Some(90));
        add(&hints, 10, None);
        assert_eq!(only(&hints), (10, Some(90)));
        add(&hints, 30, Some(30));
        assert_eq!(only(&hints), (10, Some(30)));
    }

    #[test]
    fn hints_that_were_not_stored_come_before_later_ones() {
        let hints = Hints::default();
        add(&hints, 20, Some(90));
        let taken = hints.take();
        add(&hints, 30, Some(30));
        drop(taken);
        assert_eq!(only(&hints), (20, Some(30)));
        hints.take().forget();
        assert!(hints.take().sorted().is_empty());
    }
}
