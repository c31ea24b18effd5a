-- Compatible from: 29
-- Queues that several nodes work on. A program of an earlier version sees the lease in `queues`,
-- which lasts until the last part's lease ends, and waits for it.
alter table queues add column sharing text not null default 'off';

-- The latest lease of each part of a shared queue. It is valid while `queues.lease_id` is `split_id`.
create table queue_parts (
    app_id blob not null,
    network text not null,
    part integer not null,
    split_id blob not null,
    lease_id blob,
    leased_until integer not null,
    primary key (app_id, network, part)
) strict, without rowid;
