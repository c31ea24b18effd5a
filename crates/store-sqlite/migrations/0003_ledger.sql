-- Verified website events and the ledger of payments.

-- Payments that renewals and refunds can point at, by the id that their sender gave. The money itself, its rate
-- and its credit are the event's.
create table receipts (
    app_id blob not null references apps (app_id),
    given_id text not null,
    event_id blob not null,
    kind text not null,
    refunded_micros integer not null,
    -- Counts the changes of what was given back: whoever changes it names the number they saw.
    version integer not null,
    primary key (app_id, given_id)
) strict, without rowid;

-- What only website events have.
create table web_events (
    app_id blob not null references apps (app_id),
    event_id blob not null,
    source_url text not null,
    parent_given_id text,
    email_sha256 text,
    primary key (app_id, event_id)
) strict, without rowid;
