-- Forwarding: what is to be sent, what came of it, and how the queues stand.

alter table integrations add column enabled_at integer;
alter table integrations add column mapped_at integer;

-- The networks that do not hear of an event, and why.
alter table events add column skipped text;

-- Only what is to be sent: a delivery that comes to its end moves to `deliveries`. The id is made of the event's and
-- the network, so whoever has the event has it.
create table outbox (
    app_id blob not null references apps (app_id),
    delivery_id blob not null,
    network text not null,
    event_id blob not null,
    network_event text not null,
    dedup_id text not null,
    planned_at integer not null,
    due_at integer not null,
    expires_at integer not null,
    attempts_made integer not null default 0,
    -- The first attempt of which nobody knows what came of it.
    ambiguous_since integer,
    -- Set while it is being sent. Whoever finds it set knows that an attempt was made.
    sending_at integer,
    attempts text not null default '[]',
    primary key (app_id, delivery_id)
) strict, without rowid;
create index outbox_due on outbox (app_id, network, due_at);

create table deliveries (
    app_id blob not null references apps (app_id),
    delivery_id blob not null,
    network text not null,
    event_id blob not null,
    network_event text not null,
    dedup_id text not null,
    planned_at integer not null,
    expires_at integer not null,
    settled_at integer not null,
    status text not null,
    reason text,
    attempts_made integer not null,
    attempts text not null,
    primary key (app_id, delivery_id)
) strict, without rowid;
-- People look for what went wrong; what went well is nearly all of it.
create index deliveries_by_status on deliveries (app_id, status, delivery_id)
    where status <> 'delivered';

create index deliveries_settled on deliveries (settled_at);

-- How deliveries ended, by hour since 1970.
create table delivery_hours (
    app_id blob not null references apps (app_id),
    network text not null,
    hour integer not null,
    delivered integer not null,
    validated integer not null,
    unconfirmed integer not null,
    failed integer not null,
    expired integer not null,
    cancelled integer not null,
    primary key (app_id, network, hour)
) strict, without rowid;

-- One queue an integration. Whoever holds it names the lease with everything that is written about it.
create table queues (
    app_id blob not null references apps (app_id),
    network text not null,
    paused_at integer,
    pause_code text,
    pause_words text,
    failures integer not null default 0,
    not_before integer,
    probing integer not null default 0,
    rejection_code text,
    rejections integer not null default 0,
    last_delivered_at integer,
    lease_id blob,
    leased_until integer not null default 0,
    primary key (app_id, network)
) strict, without rowid;

-- Requests whose outcome a network tells later.
create table status_checks (
    app_id blob not null references apps (app_id),
    network text not null,
    request_id text not null,
    sent_at integer not null,
    step integer not null,
    due_at integer not null,
    deliveries text not null,
    primary key (app_id, network, request_id)
) strict, without rowid;

-- What operators are to be told. A lease is a due time in the future.
create table alerts (
    app_id blob not null references apps (app_id),
    alert_id blob not null,
    kind text not null,
    network text,
    at integer not null,
    message text not null,
    attempts integer not null,
    -- Nothing once it was told, or given up on.
    due_at integer,
    primary key (app_id, alert_id)
) strict, without rowid;
create index alerts_due on alerts (due_at) where due_at is not null;
