-- Compatible from: 29
-- The time from which turns of a network's quota are free, for all nodes.
create table request_quotas (
    quota blob not null primary key,
    free_from integer not null
) strict, without rowid;
