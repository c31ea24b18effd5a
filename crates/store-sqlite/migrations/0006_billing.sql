-- Billing: what providers of subscriptions report, the people and devices it is joined to, trials on hold.

-- Everything that was reported, once by the provider's id. What is searched is a column; what it says and what it comes
-- to is in `facts`; `body` is what came, without personal data, until retention takes it.
create table notifications (
    app_id blob not null references apps (app_id),
    provider text not null,
    given_id text not null,
    environment text not null,
    -- The subscription it belongs to; itself where nothing is said of one.
    chain text not null,
    happened_at integer not null,
    received_at integer not null,
    event_id blob not null,
    digest blob not null,
    facts text not null,
    body text,
    primary key (app_id, provider, given_id)
) strict, without rowid;
create index notifications_by_chain on notifications (app_id, environment, provider, chain, happened_at);
create index notifications_with_body on notifications (received_at) where body is not null;

-- Payments of subscriptions, by everything that tells whose they are: who paid before has no first payment any more.
create table billing_payments (
    app_id blob not null references apps (app_id),
    environment text not null,
    person_key text not null,
    happened_at integer not null,
    given_id text not null,
    provider text not null,
    product text,
    primary key (app_id, environment, person_key, happened_at, given_id, provider)
) strict, without rowid;

-- Subscriptions that no device was found for, by the ids that one may show up with.
create table billing_waiting (
    app_id blob not null references apps (app_id),
    environment text not null,
    person_key text not null,
    provider text not null,
    chain text not null,
    received_at integer not null,
    primary key (app_id, environment, person_key, provider, chain)
) strict, without rowid;
create index billing_waiting_received on billing_waiting (received_at);

-- The devices that go by an id of a person, and since when.
create table user_links (
    app_id blob not null references apps (app_id),
    environment text not null,
    user_id text not null,
    device_id text not null,
    linked_at integer not null,
    primary key (app_id, environment, user_id, device_id)
) strict, without rowid;
insert into user_links (app_id, environment, user_id, device_id, linked_at)
    select app_id, environment, user_id, device_id, updated_at from identities where user_id is not null;

-- What one id had is the other's, too. Closed: what was given on is given on.
create table user_transfers (
    app_id blob not null references apps (app_id),
    environment text not null,
    to_user text not null,
    from_user text not null,
    primary key (app_id, environment, to_user, from_user)
) strict, without rowid;
create index user_transfers_from on user_transfers (app_id, environment, from_user, to_user);

create index devices_by_advertising_id on devices (app_id, environment, advertising_id)
    where advertising_id is not null;

-- Trials that count only after a while.
create table trials (
    app_id blob not null references apps (app_id),
    provider text not null,
    chain text not null,
    due_at integer not null,
    state text not null,
    primary key (app_id, provider, chain)
) strict, without rowid;
create index trials_due on trials (due_at) where state = 'held';

-- How a provider's notifications do, by day since 1970.
create table billing_days (
    app_id blob not null references apps (app_id),
    provider text not null,
    environment text not null,
    day integer not null,
    notifications integer not null,
    events integer not null,
    matched integer not null,
    unauthorized integer not null,
    reused integer not null,
    primary key (app_id, provider, environment, day)
) strict, without rowid;
