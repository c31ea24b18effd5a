-- Verified website events and the ledger of payments.
--
-- On several machines everything here is distributed by app_id.

-- Payments that renewals and refunds can point at, by the id that their sender gave. The money itself, its rate
-- and its credit are the event's.
create table receipts (
    app_id uuid not null,
    given_id text collate "C" not null,
    event_id uuid not null,
    kind text collate "C" not null,
    refunded_micros bigint not null,
    -- Counts the changes of what was given back: whoever changes it names the number they saw.
    version bigint not null,
    constraint receipts_pkey primary key (app_id, given_id),
    constraint receipts_app_fkey foreign key (app_id) references apps (app_id)
);

-- What only website events have.
create table web_events (
    app_id uuid not null,
    event_id uuid not null,
    source_url text collate "C" not null,
    parent_given_id text collate "C",
    email_sha256 text collate "C",
    constraint web_events_pkey primary key (app_id, event_id),
    constraint web_events_app_fkey foreign key (app_id) references apps (app_id)
);
