//! What happens to the notices of a member who is removed. Their channels may lead to addresses of the
//! member, who would get the figures for ever.

use super::Notice;
use crate::access::ScopeName;
use crate::access::person::User;
use crate::app::AuditedChange;
use crate::audit::Changes;
use crate::vocabulary::id::{NoticeId, UserId};
use crate::vocabulary::time::Timestamp;
use std::collections::BTreeSet;

/// Pauses the notices of a removed member, except those in `wanted`: the acting member, `by`, becomes
/// their owner. Returns the changed notices. Members with a lower role keep their notices, because
/// every role may read reports.
pub fn notices_of_removed_member(
    notices: Vec<Notice>,
    member: UserId,
    (by, wanted): (Option<&User>, &BTreeSet<NoticeId>),
    now: Timestamp,
) -> Vec<AuditedChange<Notice>> {
    let by = by.filter(|by| by.id != member && by.role.grants(ScopeName::AppsWrite));
    let lost = notices.into_iter().filter(|one| one.is_lost_by(member));
    lost.map(|notice| {
        let heir = by.filter(|_| wanted.contains(&notice.id));
        notice.inherited(heir.map(|by| by.id), now)
    })
    .collect()
}

impl Notice {
    /// Returns whether the notice is paused when a member is removed.
    pub fn is_lost_by(&self, member: UserId) -> bool {
        self.settings.active && self.owner == Some(member)
    }

    /// Gives the notice to another owner, or pauses it if there is none.
    fn inherited(self, heir: Option<UserId>, now: Timestamp) -> AuditedChange<Self> {
        let mut changes = Changes::new();
        let mut after = self;
        if let Some(heir) = heir {
            let before = after.owner.replace(heir);
            let text = |owner: UserId| owner.to_string();
            changes.compare("owner", before.map(text), Some(text(heir)));
        } else {
            after.settings.active = false;
            let text = |active: bool| Some(active.to_string());
            changes.compare("active", text(true), text(false));
        }
        after.revision = after.revision.next();
        after.updated_at = now;
        AuditedChange {
            after,
            changes: changes.into_vec(),
        }
    }
}
