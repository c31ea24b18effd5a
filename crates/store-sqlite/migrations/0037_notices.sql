-- Compatible from: 29
-- Reports and alerts that apps send to people. `settings` is JSON; the URL of a channel is encrypted.
-- `due_at` is when to look at the notice; a lease moves it into the future.
create table notices (
    app_id blob not null,
    notice_id blob not null,
    name text not null,
    active integer not null,
    topic text not null,
    settings text not null,
    url blob,
    done_until integer,
    is_beyond integer not null,
    last_sent_at integer,
    last_error text,
    created_at integer not null,
    updated_at integer not null,
    revision integer not null,
    due_at integer,
    primary key (app_id, notice_id)
) strict, without rowid;
create index notices_due on notices (due_at) where due_at is not null;

-- Messages of notices. One that was sent, or given up on, stays for a while without `due_at`, so that it
-- is not queued again.
create table notice_messages (
    app_id blob not null,
    message_id blob not null,
    notice_id blob not null,
    occasion text not null,
    at integer not null,
    attempts integer not null,
    due_at integer,
    primary key (app_id, message_id)
) strict, without rowid;
create index notice_messages_due on notice_messages (due_at) where due_at is not null;
