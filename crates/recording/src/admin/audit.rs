//! The chains of the audit log: entries that still need a place, and the cuts of retention.

use crate::tables::Tables;
use tributary_domain::audit::AuditContext;
use tributary_domain::audit::chain::{AuditChain, ChainedId, cut};
use tributary_domain::vocabulary::id::AuditId;
use tributary_domain::vocabulary::time::Timestamp;
use tributary_store::ActionNote;
use tributary_store::records::audit_row;

/// Records an action that changes nothing in the database, such as an export.
pub async fn note_action<T: Tables>(
    tables: &T,
    note: &ActionNote,
    origin: &AuditContext,
) -> Result<(), T::Failure> {
    let (organization, action) = (note.organization, note.action);
    let row = audit_row(organization, origin, action, note.app, &note.target, &[]);
    tables.insert_audit(&row).await
}

/// Gives entries without a place from `from` on their place, oldest first, for one organization.
/// Returns their number.
pub async fn chain_audit_entries<T: Tables>(
    tables: &T,
    from: Timestamp,
    limit: u32,
) -> Result<u64, T::Failure> {
    let from = AuditId::first_at(from);
    let Some(organization) = tables.organization_to_chain(from).await? else {
        return Ok(0);
    };
    let chain = tables.lock_audit_chain(organization).await?;
    let rows = tables
        .unchained_audit_rows(organization, from, limit)
        .await?;
    let mut end = chain.end;
    let mut places = Vec::with_capacity(rows.len());
    for row in &rows {
        end = end.after(&row.hashed());
        let id = AuditId::from_bytes(row.audit_id);
        places.push(ChainedId { id, place: end });
    }
    tables.write_audit_places(organization, &places).await?;
    let count = u64::try_from(places.len()).unwrap_or(u64::MAX);
    let chain = AuditChain {
        end,
        is_waiting: chain.is_waiting && count == u64::from(limit),
        ..chain
    };
    tables.write_audit_chain(organization, &chain).await?;
    // A chain that no longer waits is progress, too, even if no entry was waiting.
    Ok(count.max(1))
}

/// Removes entries older than `before`, and leaves an anchor in each chain. Returns their number.
pub async fn remove_audit_entries<T: Tables>(
    tables: &T,
    before: Timestamp,
    now: Timestamp,
    limit: u32,
) -> Result<u64, T::Failure> {
    let first_kept = AuditId::first_at(before);
    let mut removed = tables
        .remove_unchained_audit_rows(first_kept, limit)
        .await?;
    while let Some(rest) = rest(limit, removed) {
        let Some(organization) = tables.organization_to_cut(first_kept).await? else {
            break;
        };
        let chain = tables.lock_audit_chain(organization).await?;
        let after = chain.anchor.end.sequence;
        let places = tables.audit_places(organization, after, rest).await?;
        let Some(anchor) = cut(&chain.anchor, &places, before, now) else {
            break;
        };
        let until = anchor.end.sequence;
        removed += tables.remove_audit_rows(organization, until).await?;
        let chain = AuditChain { anchor, ..chain };
        tables.write_audit_chain(organization, &chain).await?;
    }
    Ok(removed)
}

/// Returns how many more entries fit into the limit; `None` if no more.
fn rest(limit: u32, removed: u64) -> Option<u32> {
    let removed = u32::try_from(removed).unwrap_or(u32::MAX);
    limit.checked_sub(removed).filter(|rest| *rest > 0)
}
