//! The audit log. This trait only reads it; the methods that make changes write the entries.

use crate::StoreResult;
use async_trait::async_trait;
use tributary_domain::access::{AppsRead, Authorized};
use tributary_domain::audit::chain::{AuditChain, ChainBreak, ChainEnd, ChainVerifier};
use tributary_domain::audit::json::{HashedEntry, with_hash};
use tributary_domain::audit::{Action, AuditContext, AuditEntry};
use tributary_domain::report::Period;
use tributary_domain::vocabulary::id::{AppId, OrganizationId};
use tributary_domain::vocabulary::page::{Page, PageRequest};
use tributary_domain::vocabulary::time::Timestamp;

/// Entries that the verification reads at a time, so that its memory does not depend on the length of
/// the log.
const VERIFIED_AT_ONCE: u32 = 500;

/// An action that changes nothing in the database, for the audit log.
#[derive(Debug, Clone)]
pub struct ActionNote {
    /// Organization.
    pub organization: OrganizationId,
    /// Audited action.
    pub action: Action,
    /// Affected app, if any.
    pub app: Option<AppId>,
    /// What was exported or imported.
    pub target: String,
}

/// A stored entry with its place in the chain.
#[derive(Debug, Clone)]
pub struct ChainedEntry {
    /// Place in the chain.
    pub place: ChainEnd,
    /// Content.
    pub entry: HashedEntry,
}

/// Consecutive entries of a chain, with the state of the chain at the same moment.
#[derive(Debug, Clone)]
pub struct ChainPage {
    /// State of the chain.
    pub chain: AuditChain,
    /// Entries in the order of the chain.
    pub entries: Vec<ChainedEntry>,
    /// Whether the page is full, so that more entries may follow.
    pub has_more: bool,
}

/// Result of verifying a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainReport {
    /// State of the chain at the end of the verification.
    pub chain: AuditChain,
    /// Number of verified entries.
    pub verified: u64,
    /// Last verified entry, or the anchor.
    pub end: ChainEnd,
    /// First break, and the time of the entry there, if it exists.
    pub broken: Option<(ChainBreak, Option<Timestamp>)>,
}

/// Verifies the chain of an organization, page by page. Entries that are added or removed by
/// retention meanwhile do not disturb it. Returns `None` if the organization has no chain.
pub async fn verify_audit_chain(
    store: &(impl AuditLog + ?Sized),
    organization: OrganizationId,
) -> StoreResult<Option<ChainReport>> {
    let mut verifier = ChainVerifier::new(ChainEnd::START);
    loop {
        let after = verifier.end().sequence;
        let page = store
            .audit_chain_page(organization, after, VERIFIED_AT_ONCE)
            .await?;
        let Some(page) = page else {
            return Ok(None);
        };
        let broken = check_page(&mut verifier, &page);
        if broken.is_some() || !page.has_more {
            return Ok(Some(ChainReport {
                chain: page.chain,
                verified: verifier.verified(),
                end: verifier.end(),
                broken,
            }));
        }
    }
}

/// Verifies a page. Returns the first break.
fn check_page(
    verifier: &mut ChainVerifier,
    page: &ChainPage,
) -> Option<(ChainBreak, Option<Timestamp>)> {
    if let Err(found) = verifier.continue_from(&page.chain.anchor) {
        return Some((found, page.chain.anchor.at));
    }
    for one in &page.entries {
        let line = one
            .entry
            .hashed_line(one.place.sequence, verifier.end().hash);
        if let Err(found) = verifier.check(one.place, &line) {
            return Some((found, Some(one.entry.at)));
        }
    }
    if page.has_more {
        return None;
    }
    let outcome = verifier.finish(&page.chain);
    let at = page.chain.anchor.at;
    outcome.err().map(|found| match found {
        ChainBreak::MissingBeforeAnchor(..) => (found, at),
        _ => (found, None),
    })
}

/// Reads the entries of a chain as the lines of an export, part by part.
#[derive(Debug, Clone)]
pub struct ChainLines {
    organization: OrganizationId,
    previous: ChainEnd,
    is_begun: bool,
}

/// A part of an export.
#[derive(Debug, Clone)]
pub struct ChainPart {
    /// Lines of consecutive entries, without line breaks.
    pub lines: Vec<String>,
    /// Sequence number of the last entry, or where the reading began.
    pub last: u64,
    /// Whether more entries may follow.
    pub has_more: bool,
}

impl ChainLines {
    /// Begins after a sequence number; 0 begins with the first entry.
    pub const fn after(organization: OrganizationId, sequence: u64) -> Self {
        let previous = ChainEnd {
            sequence,
            ..ChainEnd::START
        };
        Self {
            organization,
            previous,
            is_begun: false,
        }
    }

    /// Reads the next part of at most `limit` entries. `None` if the organization has no chain.
    pub async fn next(
        &mut self,
        store: &(impl AuditLog + ?Sized),
        limit: u32,
    ) -> StoreResult<Option<ChainPart>> {
        // The first line needs the hash of the entry before it.
        let begin = self.previous.sequence;
        let (after, limit) = if self.is_begun {
            (begin, limit)
        } else {
            (begin.saturating_sub(1), limit.saturating_add(1))
        };
        let page = store
            .audit_chain_page(self.organization, after, limit)
            .await?;
        let Some(page) = page else {
            return Ok(None);
        };
        self.is_begun = true;
        let anchor = page.chain.anchor.end;
        if anchor.sequence >= self.previous.sequence {
            self.previous = anchor;
        }
        let mut lines = Vec::with_capacity(page.entries.len());
        for one in &page.entries {
            if one.place.sequence > begin {
                lines.push(self.line(one));
            }
            self.previous = one.place;
        }
        Ok(Some(ChainPart {
            lines,
            last: self.previous.sequence,
            has_more: page.has_more,
        }))
    }

    /// Returns the line of an entry. After a gap the previous hash is unknown and left as zeros.
    fn line(&self, one: &ChainedEntry) -> String {
        let is_next = one.place.sequence == self.previous.sequence.saturating_add(1);
        let previous = if is_next {
            self.previous.hash
        } else {
            ChainEnd::START.hash
        };
        let line = one.entry.hashed_line(one.place.sequence, previous);
        with_hash(&line, one.place.hash)
    }
}

/// Selects the changes of an app that have one of some actions.
#[derive(Debug, Clone)]
pub struct AuditedChangesQuery {
    /// Actions to return.
    pub actions: Vec<Action>,
    /// When the changes were made.
    pub period: Period,
    /// Highest number of changes to return.
    pub limit: u32,
}

/// The audit log.
#[async_trait]
pub trait AuditLog: Send + Sync {
    /// Lists the organization's audit log, newest first, optionally for one app.
    async fn audit_log(
        &self,
        caller: &Authorized<AppsRead>,
        app: Option<AppId>,
        page: PageRequest,
    ) -> StoreResult<Page<AuditEntry>>;

    /// Lists an app's changes in a period, newest first.
    async fn audited_changes(
        &self,
        caller: &Authorized<AppsRead>,
        app: AppId,
        query: AuditedChangesQuery,
    ) -> StoreResult<Vec<AuditEntry>>;

    /// Lists the organizations that have a chain, by id, after the given one.
    async fn audited_organizations(
        &self,
        after: Option<OrganizationId>,
        limit: u32,
    ) -> StoreResult<Vec<OrganizationId>>;

    /// Reads the chain of an organization, and at most `limit` entries after a sequence number and
    /// after the anchor, as of one moment. An organization without a stored chain has an empty one.
    /// Returns `None` if there is no such organization.
    async fn audit_chain_page(
        &self,
        organization: OrganizationId,
        after: u64,
        limit: u32,
    ) -> StoreResult<Option<ChainPage>>;

    /// Records an action that changes nothing itself, such as an export before its first byte.
    async fn note_action(&self, note: ActionNote, origin: AuditContext) -> StoreResult<()>;

    /// Gives at most `limit` entries from `from` on their place in the chain of their organization:
    /// those from before the chain was introduced, and those of nodes of the earlier version.
    /// Returns their number.
    async fn chain_audit_entries(&self, from: Timestamp, limit: u32) -> StoreResult<u64>;

    /// Removes at most `limit` entries older than `before`, across all organizations, and leaves an
    /// anchor in each chain. Returns the number of removed entries.
    async fn remove_audit_entries(
        &self,
        before: Timestamp,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<u64>;
}
