-- A website event was a row in each of three tables. What only website events have stands with the event now, and a
-- payment gets a row of its own when something is given back of it.
alter table events
    add column source_url text collate "C",
    add column parent_given_id text collate "C",
    add column email_sha256 text collate "C";

update events
set source_url = page.source_url, parent_given_id = page.parent_given_id, email_sha256 = page.email_sha256
from web_events as page
where events.app_id = page.app_id and events.environment = 'live' and events.event_id = page.event_id;
drop table web_events;

-- How much of a payment was given back.
create table refunded_payments (
    app_id uuid not null,
    given_id text collate "C" not null,
    refunded_micros bigint not null,
    -- Counts the changes: whoever changes it names the number they saw.
    version bigint not null,
    constraint refunded_payments_pkey primary key (app_id, given_id)
);
insert into refunded_payments
select app_id, given_id, refunded_micros, version from receipts where version > 0;
drop table receipts;
