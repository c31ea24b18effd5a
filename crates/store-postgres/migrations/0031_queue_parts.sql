-- Compatible from: 28
-- Queues that several nodes work on. A node of an earlier version sees the lease in `queues`, which
-- lasts until the last part's lease ends, and waits for it.
alter table queues add column sharing text collate "C" not null default 'off';

-- The latest lease of each part of a shared queue. It is valid while `queues.lease_id` is `split_id`.
create table queue_parts (
    app_id uuid not null,
    network text collate "C" not null,
    part bigint not null,
    split_id uuid not null,
    lease_id uuid,
    leased_until bigint not null,
    constraint queue_parts_pkey primary key (app_id, network, part)
) with (fillfactor = 70);
