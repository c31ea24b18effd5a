-- Billing: what providers of subscriptions report, the people and devices it is joined to, trials on hold.
--
-- On several machines everything here is distributed by app_id.

-- Everything that was reported, once by the provider's id. What is searched is a column; what it says and what it comes
-- to is in `facts`; `body` is what came, without personal data, until retention takes it.
create table notifications (
    app_id uuid not null,
    provider text collate "C" not null,
    given_id text collate "C" not null,
    environment text collate "C" not null,
    -- The subscription it belongs to; itself where nothing is said of one.
    chain text collate "C" not null,
    happened_at bigint not null,
    received_at bigint not null,
    event_id uuid not null,
    digest bytea not null,
    facts text collate "C" not null,
    body text collate "C",
    constraint notifications_pkey primary key (app_id, provider, given_id),
    constraint notifications_app_fkey foreign key (app_id) references apps (app_id)
);
create index notifications_by_chain on notifications (app_id, environment, provider, chain, happened_at);
create index notifications_with_body on notifications (received_at) where body is not null;

-- Payments of subscriptions, by everything that tells whose they are: who paid before has no first payment any more.
create table billing_payments (
    app_id uuid not null,
    environment text collate "C" not null,
    person_key text collate "C" not null,
    happened_at bigint not null,
    given_id text collate "C" not null,
    provider text collate "C" not null,
    product text collate "C",
    constraint billing_payments_pkey primary key (app_id, environment, person_key, happened_at, given_id, provider),
    constraint billing_payments_app_fkey foreign key (app_id) references apps (app_id)
);

-- Subscriptions that no device was found for, by the ids that one may show up with.
create table billing_waiting (
    app_id uuid not null,
    environment text collate "C" not null,
    person_key text collate "C" not null,
    provider text collate "C" not null,
    chain text collate "C" not null,
    received_at bigint not null,
    constraint billing_waiting_pkey primary key (app_id, environment, person_key, provider, chain),
    constraint billing_waiting_app_fkey foreign key (app_id) references apps (app_id)
);
create index billing_waiting_received on billing_waiting (received_at);

-- The devices that go by an id of a person, and since when.
create table user_links (
    app_id uuid not null,
    environment text collate "C" not null,
    user_id text collate "C" not null,
    device_id text collate "C" not null,
    linked_at bigint not null,
    constraint user_links_pkey primary key (app_id, environment, user_id, device_id),
    constraint user_links_app_fkey foreign key (app_id) references apps (app_id)
);
insert into user_links (app_id, environment, user_id, device_id, linked_at)
    select app_id, environment, user_id, device_id, updated_at from identities where user_id is not null;

-- What one id had is the other's, too. Closed: what was given on is given on.
create table user_transfers (
    app_id uuid not null,
    environment text collate "C" not null,
    to_user text collate "C" not null,
    from_user text collate "C" not null,
    constraint user_transfers_pkey primary key (app_id, environment, to_user, from_user),
    constraint user_transfers_app_fkey foreign key (app_id) references apps (app_id)
);
create index user_transfers_from on user_transfers (app_id, environment, from_user, to_user);

create index devices_by_advertising_id on devices (app_id, environment, advertising_id)
    where advertising_id is not null;

-- Trials that count only after a while.
create table trials (
    app_id uuid not null,
    provider text collate "C" not null,
    chain text collate "C" not null,
    due_at bigint not null,
    state text collate "C" not null,
    constraint trials_pkey primary key (app_id, provider, chain),
    constraint trials_app_fkey foreign key (app_id) references apps (app_id)
);
create index trials_due on trials (due_at) where state = 'held';

-- How a provider's notifications do, by day since 1970.
create table billing_days (
    app_id uuid not null,
    provider text collate "C" not null,
    environment text collate "C" not null,
    day bigint not null,
    notifications bigint not null,
    events bigint not null,
    matched bigint not null,
    unauthorized bigint not null,
    reused bigint not null,
    constraint billing_days_pkey primary key (app_id, provider, environment, day),
    constraint billing_days_app_fkey foreign key (app_id) references apps (app_id)
);
