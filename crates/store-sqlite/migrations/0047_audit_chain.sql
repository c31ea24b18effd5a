-- Compatible from: 29
-- The hash chain of each organization's audit log (adr 64): the place of each entry, and the last entry and what retention
-- removed for each organization. Entries of earlier versions have no place until a worker gives them one; until then
-- the chain of their organization waits.
alter table audit_log add column sequence integer;
alter table audit_log add column hash blob;
create index audit_log_by_sequence on audit_log (organization_id, sequence, audit_id);

create table audit_chains (
    organization_id blob not null,
    last_sequence integer not null,
    last_hash blob not null,
    removed_sequence integer not null,
    removed_hash blob not null,
    removed_at integer,
    missing integer not null,
    is_waiting integer not null,
    primary key (organization_id)
) strict, without rowid;

insert into audit_chains
select organization_id, 0, zeroblob(32), 0, zeroblob(32), null, 0, 1 from organizations;

insert into sqlite_stat1 (tbl, idx, stat) values
    ('audit_log', 'audit_log_by_sequence', '100000 50000 1 1'),
    ('audit_chains', 'audit_chains', '1000 1');
analyze sqlite_schema;
