-- Reports: roll-ups by the quarter of an hour, the hour and the day, cohorts, costs.

-- `grain` is the length of the stretch in minutes: 15, 60 or 1440. `slot` tells apart the rows of several nodes, so
-- that they do not wait for each other; the figures of a key are the sum over its slots.

create table rollup_networks (
    app_id uuid not null,
    environment text collate "C" not null,
    grain smallint not null,
    bucket bigint not null,
    network text collate "C" not null,
    slot smallint not null,
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
    constraint rollup_networks_pkey primary key (app_id, environment, grain, bucket, network, slot)
);

create table rollup_credits_by_grain (
    app_id uuid not null,
    environment text collate "C" not null,
    grain smallint not null,
    bucket bigint not null,
    network text collate "C" not null,
    link_id uuid not null,
    campaign_digest bytea not null,
    campaign_id text collate "C" not null,
    adset_id text collate "C" not null,
    ad_id text collate "C" not null,
    slot smallint not null,
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
    constraint rollup_credits_by_grain_pkey primary key (app_id, environment, grain, bucket, network, link_id, campaign_digest, slot)
);

create table rollup_names_by_grain (
    app_id uuid not null,
    environment text collate "C" not null,
    grain smallint not null,
    bucket bigint not null,
    source text collate "C" not null,
    name text collate "C" not null,
    slot smallint not null,
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
    constraint rollup_names_by_grain_pkey primary key (app_id, environment, grain, bucket, source, name, slot)
);

create table rollup_places_by_grain (
    app_id uuid not null,
    environment text collate "C" not null,
    grain smallint not null,
    bucket bigint not null,
    country text collate "C" not null,
    platform text collate "C" not null,
    slot smallint not null,
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
    constraint rollup_places_by_grain_pkey primary key (app_id, environment, grain, bucket, country, platform, slot)
);

-- What was counted so far. Events before 1970 do not occur.
create temporary table grains on commit drop as select minutes::bigint from (values (15), (60), (1440)) as lengths (minutes);

insert into rollup_networks (app_id, environment, grain, bucket, network, slot, clicks, installs, organic_installs, sign_ups, trials, qualified_trials, subscriptions, purchases, renewals, refunds, events, paying_devices, revenue_micros, refunded_micros)
select app_id, environment, minutes, bucket - mod(bucket, minutes * 60000), network, 0, sum(clicks)::bigint, sum(installs)::bigint, sum(organic_installs)::bigint, sum(sign_ups)::bigint, sum(trials)::bigint, sum(qualified_trials)::bigint, sum(subscriptions)::bigint, sum(purchases)::bigint, sum(renewals)::bigint, sum(refunds)::bigint, sum(events)::bigint, sum(paying_devices)::bigint, sum(revenue_micros)::bigint, sum(refunded_micros)::bigint
from rollup_credits cross join grains
group by 1, 2, 3, 4, 5;

insert into rollup_credits_by_grain (app_id, environment, grain, bucket, network, link_id, campaign_digest, campaign_id, adset_id, ad_id, slot, clicks, installs, organic_installs, sign_ups, trials, qualified_trials, subscriptions, purchases, renewals, refunds, events, paying_devices, revenue_micros, refunded_micros)
select app_id, environment, minutes, bucket - mod(bucket, minutes * 60000), network, link_id, campaign_digest, campaign_id, adset_id, ad_id, 0, sum(clicks)::bigint, sum(installs)::bigint, sum(organic_installs)::bigint, sum(sign_ups)::bigint, sum(trials)::bigint, sum(qualified_trials)::bigint, sum(subscriptions)::bigint, sum(purchases)::bigint, sum(renewals)::bigint, sum(refunds)::bigint, sum(events)::bigint, sum(paying_devices)::bigint, sum(revenue_micros)::bigint, sum(refunded_micros)::bigint
from rollup_credits cross join grains
group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10;

insert into rollup_names_by_grain (app_id, environment, grain, bucket, source, name, slot, clicks, installs, organic_installs, sign_ups, trials, qualified_trials, subscriptions, purchases, renewals, refunds, events, paying_devices, revenue_micros, refunded_micros)
select app_id, environment, minutes, bucket - mod(bucket, minutes * 60000), source, name, 0, sum(clicks)::bigint, sum(installs)::bigint, sum(organic_installs)::bigint, sum(sign_ups)::bigint, sum(trials)::bigint, sum(qualified_trials)::bigint, sum(subscriptions)::bigint, sum(purchases)::bigint, sum(renewals)::bigint, sum(refunds)::bigint, sum(events)::bigint, sum(paying_devices)::bigint, sum(revenue_micros)::bigint, sum(refunded_micros)::bigint
from rollup_names cross join grains
group by 1, 2, 3, 4, 5, 6;

insert into rollup_places_by_grain (app_id, environment, grain, bucket, country, platform, slot, clicks, installs, organic_installs, sign_ups, trials, qualified_trials, subscriptions, purchases, renewals, refunds, events, paying_devices, revenue_micros, refunded_micros)
select app_id, environment, minutes, bucket - mod(bucket, minutes * 60000), country, platform, 0, sum(clicks)::bigint, sum(installs)::bigint, sum(organic_installs)::bigint, sum(sign_ups)::bigint, sum(trials)::bigint, sum(qualified_trials)::bigint, sum(subscriptions)::bigint, sum(purchases)::bigint, sum(renewals)::bigint, sum(refunds)::bigint, sum(events)::bigint, sum(paying_devices)::bigint, sum(revenue_micros)::bigint, sum(refunded_micros)::bigint
from rollup_places cross join grains
group by 1, 2, 3, 4, 5, 6;

drop table grains;

drop table rollup_credits;
alter table rollup_credits_by_grain rename to rollup_credits;
alter table rollup_credits rename constraint rollup_credits_by_grain_pkey to rollup_credits_pkey;

drop table rollup_names;
alter table rollup_names_by_grain rename to rollup_names;
alter table rollup_names rename constraint rollup_names_by_grain_pkey to rollup_names_pkey;

drop table rollup_places;
alter table rollup_places_by_grain rename to rollup_places;
alter table rollup_places rename constraint rollup_places_by_grain_pkey to rollup_places_pkey;

-- Values from outside that a day of an app told apart, and those that count under `(other)`: decided when each
-- first came, and never again.
create table rollup_values (
    app_id uuid not null,
    environment text collate "C" not null,
    day integer not null,
    kind text collate "C" not null,
    digest bytea not null,
    is_other boolean not null,
    constraint rollup_values_pkey primary key (app_id, environment, day, kind, digest)
);
create index rollup_values_told_apart on rollup_values (app_id, environment, day, kind)
    where not is_other;

-- Cohorts: devices by when they were installed, and what they did at each age, in days.

create table rollup_cohorts (
    app_id uuid not null,
    environment text collate "C" not null,
    grain smallint not null,
    bucket bigint not null,
    network text collate "C" not null,
    link_id uuid not null,
    campaign_digest bytea not null,
    campaign_id text collate "C" not null,
    age smallint not null,
    slot smallint not null,
    devices bigint not null,
    revenue_micros bigint not null,
    refunded_micros bigint not null,
    constraint rollup_cohorts_pkey primary key (app_id, environment, grain, bucket, network, link_id, campaign_digest, age, slot)
);

create table rollup_cohort_places (
    app_id uuid not null,
    environment text collate "C" not null,
    grain smallint not null,
    bucket bigint not null,
    country text collate "C" not null,
    age smallint not null,
    slot smallint not null,
    devices bigint not null,
    revenue_micros bigint not null,
    refunded_micros bigint not null,
    constraint rollup_cohort_places_pkey primary key (app_id, environment, grain, bucket, country, age, slot)
);

-- Devices that were installed. `ages` has a bit for each day that they were seen on.
create table cohort_devices (
    app_id uuid not null,
    environment text collate "C" not null,
    device_id text collate "C" not null,
    installed_at bigint not null,
    network text collate "C" not null,
    link_id uuid,
    campaign_id text collate "C" not null,
    country text collate "C" not null,
    ages bytea not null,
    constraint cohort_devices_pkey primary key (app_id, environment, device_id)
);
create index cohort_devices_by_install on cohort_devices (app_id, environment, installed_at);

-- What ads cost, as people told it. `cost_id` is made of day, network and campaign and begins with the day.
create table costs (
    app_id uuid not null,
    cost_id uuid not null,
    day integer not null,
    network text collate "C" not null,
    campaign_id text collate "C" not null,
    amount_micros bigint not null,
    currency text collate "C" not null,
    usd_micros bigint not null,
    rate_day integer not null,
    updated_at bigint not null,
    constraint costs_pkey primary key (app_id, cost_id),
    constraint costs_app_fkey foreign key (app_id) references apps (app_id)
);

create index events_by_user on events (app_id, environment, user_id, event_id) where user_id is not null;
