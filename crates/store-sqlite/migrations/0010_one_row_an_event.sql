-- A website event was a row in each of three tables. What only website events have stands with the event now, and a
-- payment gets a row of its own when something is given back of it.
alter table events add column source_url text;
alter table events add column parent_given_id text;
alter table events add column email_sha256 text;

update events
set source_url = page.source_url, parent_given_id = page.parent_given_id, email_sha256 = page.email_sha256
from web_events as page
where events.app_id = page.app_id and events.environment = 'live' and events.event_id = page.event_id;
drop table web_events;

-- How much of a payment was given back.
create table refunded_payments (
    app_id blob not null,
    given_id text not null,
    refunded_micros integer not null,
    -- Counts the changes: whoever changes it names the number they saw.
    version integer not null,
    primary key (app_id, given_id)
) strict, without rowid;
insert into refunded_payments
select app_id, given_id, refunded_micros, version from receipts where version > 0;
drop table receipts;

-- Whatever is recorded belongs to an app that its writer has just read, and apps are archived, never deleted: the app
-- is not looked up once more for each row. This is how SQLite's documentation has a constraint taken off a table.
pragma writable_schema = on;
update sqlite_schema set sql = replace(sql, ' references apps (app_id)', '')
where type = 'table'
  and name in ('deliveries', 'devices', 'event_keys', 'events', 'identities', 'outbox', 'postback_keys', 'postbacks');
pragma writable_schema = reset;
