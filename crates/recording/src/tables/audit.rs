//! The audit log and its chains.

use super::EngineTransaction;
use tributary_domain::audit::chain::{AuditChain, ChainEnd, ChainedId};
use tributary_domain::vocabulary::id::{AuditId, OrganizationId};
use tributary_store::records::AuditRow;

/// The audit log table, the chain of each organization, and the version of the configuration.
pub trait AuditTable: EngineTransaction {
    /// Adds an entry at the end of its organization's chain. If the change affects keys, apps or
    /// links that nodes cache, the configuration gets a new version in the same transaction. Every
    /// change to them is audited, so no change can leave the version as it is.
    ///
    /// Call this last: the end of the chain is one row for the organization, and the version is one
    /// row for the whole instance. A transaction that has written them must not wait for another one.
    /// Entries of several organizations are added in the order of their ids.
    async fn insert_audit(&self, row: &AuditRow) -> Result<(), Self::Failure> {
        let organization = OrganizationId::from_bytes(row.organization_id);
        let chain = self.lock_audit_chain(organization).await?;
        if chain.is_waiting {
            self.insert_audit_row(row, None).await?;
        } else {
            let end = chain.end.after(&row.hashed());
            self.insert_audit_row(row, Some(end)).await?;
            let chain = AuditChain { end, ..chain };
            self.write_audit_chain(organization, &chain).await?;
        }
        if row.changes_cached_configuration() {
            self.write_configuration_version(AuditId::from_bytes(row.audit_id))
                .await?;
        }
        Ok(())
    }

    /// Locks the chain of an organization, and creates it if there is none.
    async fn lock_audit_chain(
        &self,
        organization: OrganizationId,
    ) -> Result<AuditChain, Self::Failure>;

    /// Writes the state of a locked chain.
    async fn write_audit_chain(
        &self,
        organization: OrganizationId,
        chain: &AuditChain,
    ) -> Result<(), Self::Failure>;

    /// Writes the entry's row.
    async fn insert_audit_row(
        &self,
        row: &AuditRow,
        place: Option<ChainEnd>,
    ) -> Result<(), Self::Failure>;

    /// Returns the first organization whose chain waits, or that has entries without a place from
    /// `from` on.
    async fn organization_to_chain(
        &self,
        from: AuditId,
    ) -> Result<Option<OrganizationId>, Self::Failure>;

    /// Returns an organization's entries without a place, from `from` on, oldest first.
    async fn unchained_audit_rows(
        &self,
        organization: OrganizationId,
        from: AuditId,
        limit: u32,
    ) -> Result<Vec<AuditRow>, Self::Failure>;

    /// Writes the places of an organization's entries.
    async fn write_audit_places(
        &self,
        organization: OrganizationId,
        places: &[ChainedId],
    ) -> Result<(), Self::Failure>;

    /// Returns the first organization whose chain begins with an entry before `before`.
    async fn organization_to_cut(
        &self,
        before: AuditId,
    ) -> Result<Option<OrganizationId>, Self::Failure>;

    /// Returns the first entries of a chain after a sequence number.
    async fn audit_places(
        &self,
        organization: OrganizationId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<ChainedId>, Self::Failure>;

    /// Removes an organization's entries up to a sequence number. Returns their number.
    async fn remove_audit_rows(
        &self,
        organization: OrganizationId,
        until: u64,
    ) -> Result<u64, Self::Failure>;

    /// Removes entries without a place before `before`. Returns their number.
    async fn remove_unchained_audit_rows(
        &self,
        before: AuditId,
        limit: u32,
    ) -> Result<u64, Self::Failure>;

    /// Writes the version of the configuration.
    async fn write_configuration_version(&self, version: AuditId) -> Result<(), Self::Failure>;
}
