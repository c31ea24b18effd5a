-- Clicks, devices with the decisions about their installs, events, roll-ups, exchange rates.
-- Money is in millionths, rates in billionths, days are counted since 1970.
--
-- On several machines everything here is distributed by app_id, but for exchange_rates, which is small and
-- a reference table.

-- A link is also looked up by its id alone. Every link has a slug, and slugs are on every machine: they tell
-- which app's machine to ask.
create index link_slugs_by_link on link_slugs (link_id);

create table clicks (
    app_id uuid not null,
    click_id uuid not null,
    link_id uuid not null,
    clicked_at bigint not null,
    network text collate "C",
    network_by text collate "C",
    bot text collate "C",
    platform text collate "C" not null,
    os_version text collate "C",
    model text collate "C",
    language text collate "C",
    timezone text collate "C",
    screen text collate "C",
    address text collate "C",
    address_hash bytea,
    advertising_hash bytea,
    country text collate "C",
    user_agent text collate "C",
    referer text collate "C",
    destination_origin text collate "C",
    captured text collate "C" not null,
    -- The one live device whose install has this click.
    taken_by text collate "C",
    -- True once a decision refers to it: then it stays as long as that does.
    kept boolean not null default false,
    constraint clicks_pkey primary key (app_id, click_id),
    constraint clicks_link_fkey foreign key (app_id, link_id) references links (app_id, link_id)
);
create index clicks_by_address on clicks (app_id, address_hash, clicked_at)
    where address_hash is not null and bot is null;
create index clicks_by_advertising_id on clicks (app_id, advertising_hash, clicked_at)
    where advertising_hash is not null and bot is null;
create index clicks_with_address on clicks (clicked_at) where address is not null;
create index clicks_not_kept on clicks (clicked_at) where not kept;

create table devices (
    app_id uuid not null,
    environment text collate "C" not null,
    device_id text collate "C" not null,
    platform text collate "C" not null,
    traits text collate "C" not null,
    advertising_id text collate "C",
    idfv text collate "C",
    consent text collate "C" not null,
    country text collate "C",
    address_hash bytea,
    first_seen_at bigint not null,
    last_seen_at bigint not null,
    attribution_id uuid not null,
    attribution_revision bigint not null,
    decided_at bigint not null,
    network text collate "C" not null,
    link_id uuid,
    decision text collate "C" not null,
    constraint devices_pkey primary key (app_id, environment, device_id),
    constraint devices_app_fkey foreign key (app_id) references apps (app_id)
);
create index devices_by_address on devices (app_id, environment, address_hash, first_seen_at)
    where address_hash is not null;
create index devices_with_address on devices (first_seen_at) where address_hash is not null;

-- Who is behind a device, and the first payment that counted. Known before the device is, sometimes, and the
-- row that is locked by whoever changes anything of a device; so there is one for every device, if only an
-- empty one.
create table identities (
    app_id uuid not null,
    environment text collate "C" not null,
    device_id text collate "C" not null,
    user_id text collate "C",
    matching text collate "C" not null,
    first_payment_id uuid,
    updated_at bigint not null,
    constraint identities_pkey primary key (app_id, environment, device_id),
    constraint identities_app_fkey foreign key (app_id) references apps (app_id)
);
create index identities_by_user on identities (app_id, environment, user_id)
    where user_id is not null;

-- Tokens to be redeemed at Apple's. A lease is a due time in the future.
create table ad_services_tokens (
    app_id uuid not null,
    environment text collate "C" not null,
    device_id text collate "C" not null,
    token text collate "C" not null,
    received_at bigint not null,
    attempts bigint not null,
    due_at bigint not null,
    constraint ad_services_tokens_pkey primary key (app_id, environment, device_id),
    constraint ad_services_tokens_app_fkey foreign key (app_id) references apps (app_id)
);
create index ad_services_tokens_due on ad_services_tokens (due_at);

create table events (
    app_id uuid not null,
    environment text collate "C" not null,
    -- Begins with the event's own time: the log is read in this order.
    event_id uuid not null,
    given_id text collate "C" not null,
    source text collate "C" not null,
    name text collate "C" not null,
    original_name text collate "C",
    occurred_at bigint not null,
    received_at bigint not null,
    device_id text collate "C",
    user_id text collate "C",
    platform text collate "C",
    country text collate "C",
    amount_micros bigint,
    currency text collate "C",
    usd_micros bigint,
    rate text collate "C",
    rate_day integer,
    rate_source text collate "C",
    uncounted text collate "C",
    network text collate "C",
    match_type text collate "C",
    link_id uuid,
    click_id uuid,
    campaign text collate "C",
    params text collate "C",
    first_payment boolean not null,
    own boolean not null,
    constraint events_pkey primary key (app_id, environment, event_id),
    constraint events_app_fkey foreign key (app_id) references apps (app_id)
);
create index events_by_device on events (app_id, environment, device_id, event_id);
create index events_by_name on events (app_id, environment, name, event_id);

-- Each event once, by the id that its sender gave. Narrow, and apart from the wide table, so that the wide one
-- may be divided by time.
create table event_keys (
    app_id uuid not null,
    environment text collate "C" not null,
    source text collate "C" not null,
    given_id text collate "C" not null,
    event_id uuid not null,
    fingerprint bytea,
    constraint event_keys_pkey primary key (app_id, environment, source, given_id),
    constraint event_keys_app_fkey foreign key (app_id) references apps (app_id)
);

-- Roll-ups: one row a quarter of an hour and key. Texts of a key are empty where there is none, and a link is
-- all zeros.
--
-- The three ids of a campaign come from outside and may be longer together than an index can hold, so the key
-- has their digest. That is the one thing SQLite needs no column for.
create table rollup_credits (
    app_id uuid not null,
    environment text collate "C" not null,
    bucket bigint not null,
    network text collate "C" not null,
    link_id uuid not null,
    campaign_digest bytea not null,
    campaign_id text collate "C" not null,
    adset_id text collate "C" not null,
    ad_id text collate "C" not null,
    clicks bigint not null,
    installs bigint not null,
    organic_installs bigint not null,
    sign_ups bigint not null,
    trials bigint not null,
    qualified_trials bigint not null,
    subscriptions bigint not null,
    purchases bigint not null,
    renewals bigint not null,
    refunds bigint not null,
    events bigint not null,
    paying_devices bigint not null,
    revenue_micros bigint not null,
    refunded_micros bigint not null,
    constraint rollup_credits_pkey
        primary key (app_id, environment, bucket, network, link_id, campaign_digest)
);

create table rollup_names (
    app_id uuid not null,
    environment text collate "C" not null,
    bucket bigint not null,
    source text collate "C" not null,
    name text collate "C" not null,
    clicks bigint not null,
    installs bigint not null,
    organic_installs bigint not null,
    sign_ups bigint not null,
    trials bigint not null,
    qualified_trials bigint not null,
    subscriptions bigint not null,
    purchases bigint not null,
    renewals bigint not null,
    refunds bigint not null,
    events bigint not null,
    paying_devices bigint not null,
    revenue_micros bigint not null,
    refunded_micros bigint not null,
    constraint rollup_names_pkey primary key (app_id, environment, bucket, source, name)
);

create table rollup_places (
    app_id uuid not null,
    environment text collate "C" not null,
    bucket bigint not null,
    country text collate "C" not null,
    platform text collate "C" not null,
    clicks bigint not null,
    installs bigint not null,
    organic_installs bigint not null,
    sign_ups bigint not null,
    trials bigint not null,
    qualified_trials bigint not null,
    subscriptions bigint not null,
    purchases bigint not null,
    renewals bigint not null,
    refunds bigint not null,
    events bigint not null,
    paying_devices bigint not null,
    revenue_micros bigint not null,
    refunded_micros bigint not null,
    constraint rollup_places_pkey primary key (app_id, environment, bucket, country, platform)
);

-- What was imported; the snapshot that is compiled in is not stored.
create table exchange_rates (
    currency text collate "C" not null,
    day integer not null,
    base text collate "C" not null,
    nanos bigint not null,
    source text collate "C" not null,
    imported_at bigint not null,
    constraint exchange_rates_pkey primary key (currency, day)
);
create index exchange_rates_by_day on exchange_rates (day);
