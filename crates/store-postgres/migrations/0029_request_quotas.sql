-- Compatible from: 28
-- The time from which turns of a network's quota are free, for all nodes.
create table request_quotas (
    quota bytea not null,
    free_from bigint not null,
    constraint request_quotas_pkey primary key (quota)
);
