-- Compatible from: 28
-- The hash chain of each organization's audit log (adr 64): the place of each entry, and the last entry and what retention
-- removed for each organization. Entries of earlier versions have no place until a worker gives them one; until then
-- the chain of their organization waits.
alter table audit_log add column sequence bigint;
alter table audit_log add column hash bytea;

create table audit_chains (
    organization_id uuid not null,
    last_sequence bigint not null,
    last_hash bytea not null,
    removed_sequence bigint not null,
    removed_hash bytea not null,
    removed_at bigint,
    missing bigint not null,
    is_waiting boolean not null,
    constraint audit_chains_pkey primary key (organization_id)
);

insert into audit_chains
select organization_id, 0, decode(repeat('00', 32), 'hex'), 0, decode(repeat('00', 32), 'hex'), null, 0, true
from organizations;
