-- Forwarding: what is to be sent, what came of it, and how the queues stand.
--
-- On several machines everything here is distributed by app_id.

alter table integrations add column enabled_at bigint;
alter table integrations add column mapped_at bigint;

-- The networks that do not hear of an event, and why.
alter table events add column skipped text collate "C";

-- Only what is to be sent: a delivery that comes to its end moves to `deliveries`. The id is made of the event's and
-- the network, so whoever has the event has it.
--
-- Rows come and go all the time, and each is written once or twice in between: room on every page keeps those writes
-- out of the indexes, and what is dead is cleared away by its number and not by its share of a table that may be large.
create table outbox (
    app_id uuid not null,
    delivery_id uuid not null,
    network text collate "C" not null,
    event_id uuid not null,
    network_event text collate "C" not null,
    dedup_id text collate "C" not null,
    planned_at bigint not null,
    due_at bigint not null,
    expires_at bigint not null,
    attempts_made bigint not null default 0,
    -- The first attempt of which nobody knows what came of it.
    ambiguous_since bigint,
    -- Set while it is being sent. Whoever finds it set knows that an attempt was made.
    sending_at bigint,
    attempts text collate "C" not null default '[]',
    constraint outbox_pkey primary key (app_id, delivery_id),
    constraint outbox_app_fkey foreign key (app_id) references apps (app_id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
create index outbox_due on outbox (app_id, network, due_at);

create table deliveries (
    app_id uuid not null,
    delivery_id uuid not null,
    network text collate "C" not null,
    event_id uuid not null,
    network_event text collate "C" not null,
    dedup_id text collate "C" not null,
    planned_at bigint not null,
    expires_at bigint not null,
    settled_at bigint not null,
    status text collate "C" not null,
    reason text collate "C",
    attempts_made bigint not null,
    attempts text collate "C" not null,
    constraint deliveries_pkey primary key (app_id, delivery_id),
    constraint deliveries_app_fkey foreign key (app_id) references apps (app_id)
);
-- People look for what went wrong; what went well is nearly all of it.
create index deliveries_by_status on deliveries (app_id, status, delivery_id)
    where status <> 'delivered';
-- Rows lie in the order of their ends, so that next to nothing tells where the old ones are.
create index deliveries_settled on deliveries using brin (settled_at)
    with (autosummarize = on);

-- How deliveries ended, by hour since 1970.
create table delivery_hours (
    app_id uuid not null,
    network text collate "C" not null,
    hour bigint not null,
    delivered bigint not null,
    validated bigint not null,
    unconfirmed bigint not null,
    failed bigint not null,
    expired bigint not null,
    cancelled bigint not null,
    constraint delivery_hours_pkey primary key (app_id, network, hour),
    constraint delivery_hours_app_fkey foreign key (app_id) references apps (app_id)
) with (fillfactor = 70);

-- One queue an integration. Whoever holds it names the lease with everything that is written about it.
create table queues (
    app_id uuid not null,
    network text collate "C" not null,
    paused_at bigint,
    pause_code text collate "C",
    pause_words text collate "C",
    failures bigint not null default 0,
    not_before bigint,
    probing boolean not null default false,
    rejection_code text collate "C",
    rejections bigint not null default 0,
    last_delivered_at bigint,
    lease_id uuid,
    leased_until bigint not null default 0,
    constraint queues_pkey primary key (app_id, network),
    constraint queues_app_fkey foreign key (app_id) references apps (app_id)
) with (fillfactor = 70);

-- Requests whose outcome a network tells later.
create table status_checks (
    app_id uuid not null,
    network text collate "C" not null,
    request_id text collate "C" not null,
    sent_at bigint not null,
    step bigint not null,
    due_at bigint not null,
    deliveries text collate "C" not null,
    constraint status_checks_pkey primary key (app_id, network, request_id),
    constraint status_checks_app_fkey foreign key (app_id) references apps (app_id)
);
create index status_checks_due on status_checks (app_id, network, due_at);

-- What operators are to be told. A lease is a due time in the future.
create table alerts (
    app_id uuid not null,
    alert_id uuid not null,
    kind text collate "C" not null,
    network text collate "C",
    at bigint not null,
    message text collate "C" not null,
    attempts bigint not null,
    -- Nothing once it was told, or given up on.
    due_at bigint,
    constraint alerts_pkey primary key (app_id, alert_id),
    constraint alerts_app_fkey foreign key (app_id) references apps (app_id)
);
create index alerts_due on alerts (due_at) where due_at is not null;
