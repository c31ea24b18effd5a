-- Compatible from: 28
-- Outside a transaction
drop index concurrently if exists audit_log_by_sequence;
create index concurrently audit_log_by_sequence on audit_log (organization_id, sequence, audit_id);
