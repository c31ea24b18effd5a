-- Compatible from: 28
-- Reports and alerts that apps send to people. `settings` is JSON; the URL of a channel is encrypted.
-- `due_at` is when to look at the notice; a lease moves it into the future. A node of an earlier version
-- sends alerts to webhooks only, so notices may miss an alert that such a node sends.
create table notices (
    app_id uuid not null,
    notice_id uuid not null,
    name text collate "C" not null,
    active boolean not null,
    topic text collate "C" not null,
    settings text collate "C" not null,
    url bytea,
    done_until bigint,
    is_beyond boolean not null,
    last_sent_at bigint,
    last_error text collate "C",
    created_at bigint not null,
    updated_at bigint not null,
    revision bigint not null,
    due_at bigint,
    constraint notices_pkey primary key (app_id, notice_id)
);
create index notices_due on notices (due_at) where due_at is not null;

-- Messages of notices. One that was sent, or given up on, stays for a while without `due_at`, so that it
-- is not queued again.
create table notice_messages (
    app_id uuid not null,
    message_id uuid not null,
    notice_id uuid not null,
    occasion text collate "C" not null,
    at bigint not null,
    attempts bigint not null,
    due_at bigint,
    constraint notice_messages_pkey primary key (app_id, message_id)
);
create index notice_messages_due on notice_messages (due_at) where due_at is not null;
