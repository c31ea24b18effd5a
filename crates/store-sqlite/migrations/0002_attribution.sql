-- Clicks, devices with the decisions about their installs, events, roll-ups, exchange rates.
-- Money is in millionths, rates in billionths, days are counted since 1970.

create table clicks (
    app_id blob not null,
    click_id blob not null,
    link_id blob not null,
    clicked_at integer not null,
    network text,
    network_by text,
    bot text,
    platform text not null,
    os_version text,
    model text,
    language text,
    timezone text,
    screen text,
    address text,
    address_hash blob,
    advertising_hash blob,
    country text,
    user_agent text,
    referer text,
    destination_origin text,
    captured text not null,
    -- The one live device whose install has this click.
    taken_by text,
    -- 1 once a decision refers to it: then it stays as long as that does.
    kept integer not null default 0,
    primary key (app_id, click_id),
    foreign key (app_id, link_id) references links (app_id, link_id)
) strict, without rowid;
create index clicks_by_address on clicks (app_id, address_hash, clicked_at)
    where address_hash is not null and bot is null;
create index clicks_by_advertising_id on clicks (app_id, advertising_hash, clicked_at)
    where advertising_hash is not null and bot is null;
create index clicks_with_address on clicks (clicked_at) where address is not null;
create index clicks_not_kept on clicks (clicked_at) where kept = 0;

create table devices (
    app_id blob not null references apps (app_id),
    environment text not null,
    device_id text not null,
    platform text not null,
    traits text not null,
    advertising_id text,
    idfv text,
    consent text not null,
    country text,
    address_hash blob,
    first_seen_at integer not null,
    last_seen_at integer not null,
    attribution_id blob not null,
    attribution_revision integer not null,
    decided_at integer not null,
    network text not null,
    link_id blob,
    decision text not null,
    primary key (app_id, environment, device_id)
) strict, without rowid;
create index devices_by_address on devices (app_id, environment, address_hash, first_seen_at)
    where address_hash is not null;
create index devices_with_address on devices (first_seen_at) where address_hash is not null;

-- Who is behind a device, and the first payment that counted. Known before the device is, sometimes.
create table identities (
    app_id blob not null references apps (app_id),
    environment text not null,
    device_id text not null,
    user_id text,
    matching text not null,
    first_payment_id blob,
    updated_at integer not null,
    primary key (app_id, environment, device_id)
) strict, without rowid;
create index identities_by_user on identities (app_id, environment, user_id)
    where user_id is not null;

-- Tokens to be redeemed at Apple's. A lease is a due time in the future.
create table ad_services_tokens (
    app_id blob not null references apps (app_id),
    environment text not null,
    device_id text not null,
    token text not null,
    received_at integer not null,
    attempts integer not null,
    due_at integer not null,
    primary key (app_id, environment, device_id)
) strict, without rowid;
create index ad_services_tokens_due on ad_services_tokens (due_at);

create table events (
    app_id blob not null references apps (app_id),
    environment text not null,
    -- Begins with the event's own time: the log is read in this order.
    event_id blob not null,
    given_id text not null,
    source text not null,
    name text not null,
    original_name text,
    occurred_at integer not null,
    received_at integer not null,
    device_id text,
    user_id text,
    platform text,
    country text,
    amount_micros integer,
    currency text,
    usd_micros integer,
    rate text,
    rate_day integer,
    rate_source text,
    uncounted text,
    network text,
    match_type text,
    link_id blob,
    click_id blob,
    campaign text,
    params text,
    first_payment integer not null,
    own integer not null,
    primary key (app_id, environment, event_id)
) strict, without rowid;
create index events_by_device on events (app_id, environment, device_id, event_id);
create index events_by_name on events (app_id, environment, name, event_id);

-- Each event once, by the id that its sender gave. Narrow, and apart from the wide table, so that the wide one
-- may be divided by time.
create table event_keys (
    app_id blob not null references apps (app_id),
    environment text not null,
    source text not null,
    given_id text not null,
    event_id blob not null,
    fingerprint blob,
    primary key (app_id, environment, source, given_id)
) strict, without rowid;

-- Roll-ups: one row a quarter of an hour and key. Texts and links of a key are empty where there is none.
create table rollup_credits (
    app_id blob not null,
    environment text not null,
    bucket integer not null,
    network text not null,
    link_id blob not null,
    campaign_id text not null,
    adset_id text not null,
    ad_id text not null,
    clicks integer not null,
    installs integer not null,
    organic_installs integer not null,
    sign_ups integer not null,
    trials integer not null,
    qualified_trials integer not null,
    subscriptions integer not null,
    purchases integer not null,
    renewals integer not null,
    refunds integer not null,
    events integer not null,
    paying_devices integer not null,
    revenue_micros integer not null,
    refunded_micros integer not null,
    primary key (app_id, environment, bucket, network, link_id, campaign_id, adset_id, ad_id)
) strict, without rowid;

create table rollup_names (
    app_id blob not null,
    environment text not null,
    bucket integer not null,
    source text not null,
    name text not null,
    clicks integer not null,
    installs integer not null,
    organic_installs integer not null,
    sign_ups integer not null,
    trials integer not null,
    qualified_trials integer not null,
    subscriptions integer not null,
    purchases integer not null,
    renewals integer not null,
    refunds integer not null,
    events integer not null,
    paying_devices integer not null,
    revenue_micros integer not null,
    refunded_micros integer not null,
    primary key (app_id, environment, bucket, source, name)
) strict, without rowid;

create table rollup_places (
    app_id blob not null,
    environment text not null,
    bucket integer not null,
    country text not null,
    platform text not null,
    clicks integer not null,
    installs integer not null,
    organic_installs integer not null,
    sign_ups integer not null,
    trials integer not null,
    qualified_trials integer not null,
    subscriptions integer not null,
    purchases integer not null,
    renewals integer not null,
    refunds integer not null,
    events integer not null,
    paying_devices integer not null,
    revenue_micros integer not null,
    refunded_micros integer not null,
    primary key (app_id, environment, bucket, country, platform)
) strict, without rowid;

-- What was imported; the snapshot that is compiled in is not stored.
create table exchange_rates (
    currency text not null,
    day integer not null,
    base text not null,
    nanos integer not null,
    source text not null,
    imported_at integer not null,
    primary key (currency, day)
) strict, without rowid;
create index exchange_rates_by_day on exchange_rates (day);

-- A URL may name a link by its id, which says nothing of its app.
create unique index links_by_id on links (link_id);
