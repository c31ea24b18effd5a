//! Writes the audit log and its chains.

use crate::Failure;
use crate::instance::write_configuration_version;
use crate::params::{Param, column};
use crate::rows::{id, qualified, read_row, uuid};
use crate::tx::Tx;
use tributary_domain::audit::chain::{AuditChain, ChainEnd, ChainedId};
use tributary_domain::vocabulary::id::{AuditId, OrganizationId};
use tributary_recording::AuditTable;
use tributary_store::records::{AuditChainRow, AuditPlaceRow, AuditRow, Columns, stored_sequence};

impl AuditTable for Tx {
    async fn lock_audit_chain(&self, organization: OrganizationId) -> Result<AuditChain, Failure> {
        let new = AuditChainRow::write(organization, &AuditChain::NEW);
        // The update changes nothing, but locks the row.
        let sql = format!(
            "insert into audit_chains ({columns})
             values ($1, $2, $3, $4, $5, $6, $7, $8)
             on conflict (organization_id)
             do update set last_sequence = audit_chains.last_sequence
             returning {returned}",
            columns = AuditChainRow::COLUMNS,
            returned = qualified("audit_chains", AuditChainRow::COLUMNS),
        );
        let row = self
            .query_one(
                &sql,
                &[
                    &uuid(&new.organization_id),
                    &new.last_sequence,
                    &new.last_hash.as_slice(),
                    &new.removed_sequence,
                    &new.removed_hash.as_slice(),
                    &new.removed_at,
                    &new.missing,
                    &new.is_waiting,
                ],
            )
            .await?;
        Ok(read_row::<AuditChainRow>(&row)?.read())
    }

    async fn write_audit_chain(
        &self,
        organization: OrganizationId,
        chain: &AuditChain,
    ) -> Result<(), Failure> {
        let row = AuditChainRow::write(organization, chain);
        self.execute(
            "update audit_chains
             set last_sequence = $2, last_hash = $3, removed_sequence = $4, removed_hash = $5,
                 removed_at = $6, missing = $7, is_waiting = $8
             where organization_id = $1",
            &[
                &uuid(&row.organization_id),
                &row.last_sequence,
                &row.last_hash.as_slice(),
                &row.removed_sequence,
                &row.removed_hash.as_slice(),
                &row.removed_at,
                &row.missing,
                &row.is_waiting,
            ],
        )
        .await
    }

    async fn insert_audit_row(
        &self,
        row: &AuditRow,
        place: Option<ChainEnd>,
    ) -> Result<(), Failure> {
        self.execute(
            "insert into audit_log (organization_id, audit_id, at, actor_kind, actor_id, action,
                                    app_id, target, changes, address, request_id, environment,
                                    sequence, hash)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
            &[
                &uuid(&row.organization_id),
                &uuid(&row.audit_id),
                &row.at,
                &row.actor_kind,
                &row.actor_id.as_ref().map(uuid),
                &row.action,
                &row.app_id.as_ref().map(uuid),
                &row.target,
                &row.changes,
                &row.address,
                &row.request_id,
                &row.environment,
                &place.map(|place| stored_sequence(place.sequence)),
                &place.as_ref().map(|place| place.hash.as_bytes().as_slice()),
            ],
        )
        .await
    }

    async fn organization_to_chain(
        &self,
        from: AuditId,
    ) -> Result<Option<OrganizationId>, Failure> {
        let sql = "select organization_id from organizations
                   where exists (select from audit_chains
                                 where audit_chains.organization_id = organizations.organization_id
                                   and is_waiting)
                      or exists (select from audit_log
                                 where audit_log.organization_id = organizations.organization_id
                                   and sequence is null and audit_id >= $1)
                   order by organization_id limit 1";
        let row = self.query_opt(sql, &[&uuid(from.as_bytes())]).await?;
        row.map(|row| Ok(OrganizationId::from_bytes(id(&row, 0)?)))
            .transpose()
    }

    async fn unchained_audit_rows(
        &self,
        organization: OrganizationId,
        from: AuditId,
        limit: u32,
    ) -> Result<Vec<AuditRow>, Failure> {
        let sql = format!(
            "select {} from audit_log
             where organization_id = $1 and sequence is null and audit_id >= $2
             order by audit_id limit $3",
            AuditRow::COLUMNS
        );
        let organization = uuid(organization.as_bytes());
        let params: [&dyn Param; 3] = [&organization, &uuid(from.as_bytes()), &i64::from(limit)];
        let rows = self.query(&sql, &params).await?;
        rows.iter().map(read_row::<AuditRow>).collect()
    }

    async fn write_audit_places(
        &self,
        organization: OrganizationId,
        places: &[ChainedId],
    ) -> Result<(), Failure> {
        let ids = column(places, |one| uuid(one.id.as_bytes()));
        let sequences = column(places, |one| stored_sequence(one.place.sequence));
        let hashes = column(places, |one| one.place.hash.as_bytes().as_slice());
        self.execute(
            "update audit_log set sequence = new.sequence, hash = new.hash
             from unnest($2, $3, $4) as new (audit_id, sequence, hash)
             where organization_id = $1 and audit_log.audit_id = new.audit_id",
            &[&uuid(organization.as_bytes()), &ids, &sequences, &hashes],
        )
        .await
    }

    async fn organization_to_cut(
        &self,
        before: AuditId,
    ) -> Result<Option<OrganizationId>, Failure> {
        let sql = "select organization_id from audit_chains
                   where (select audit_id from audit_log
                          where audit_log.organization_id = audit_chains.organization_id
                            and sequence > removed_sequence
                          order by sequence limit 1) < $1
                   order by organization_id limit 1";
        let row = self.query_opt(sql, &[&uuid(before.as_bytes())]).await?;
        row.map(|row| Ok(OrganizationId::from_bytes(id(&row, 0)?)))
            .transpose()
    }

    async fn audit_places(
        &self,
        organization: OrganizationId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<ChainedId>, Failure> {
        let sql = format!(
            "select {} from audit_log where organization_id = $1 and sequence > $2
             order by sequence limit $3",
            AuditPlaceRow::COLUMNS
        );
        let organization = uuid(organization.as_bytes());
        let params: [&dyn Param; 3] = [&organization, &stored_sequence(after), &i64::from(limit)];
        let rows = self.query(&sql, &params).await?;
        let place = |row| Ok(read_row::<AuditPlaceRow>(row)?.read());
        rows.iter().map(place).collect()
    }

    async fn remove_audit_rows(
        &self,
        organization: OrganizationId,
        until: u64,
    ) -> Result<u64, Failure> {
        self.execute_counting(
            "delete from audit_log where organization_id = $1 and sequence <= $2",
            &[&uuid(organization.as_bytes()), &stored_sequence(until)],
        )
        .await
    }

    async fn remove_unchained_audit_rows(
        &self,
        before: AuditId,
        limit: u32,
    ) -> Result<u64, Failure> {
        // Grouping by the key keeps the subquery separate, so that the server looks up the old
        // entries of each organization in the index, and stops at the limit.
        let sql = "delete from audit_log where (organization_id, audit_id) in (
                       select old.organization_id, old.audit_id from organizations
                       cross join lateral
                           (select organization_id, audit_id from audit_log
                            where organization_id = organizations.organization_id
                              and sequence is null and audit_id < $1
                            group by organization_id, audit_id) as old
                       limit $2)";
        self.execute_counting(sql, &[&uuid(before.as_bytes()), &i64::from(limit)])
            .await
    }

    async fn write_configuration_version(&self, version: AuditId) -> Result<(), Failure> {
        write_configuration_version(self, version).await
    }
}
