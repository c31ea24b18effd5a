-- Reports: roll-ups by the quarter of an hour, the hour and the day, cohorts, costs.

-- `grain` is the length of the stretch in minutes: 15, 60 or 1440. `slot` tells apart the rows of several nodes, so
-- that they do not wait for each other; the figures of a key are the sum over its slots.

create table rollup_networks (
    app_id blob not null,
    environment text not null,
    grain integer not null,
    bucket integer not null,
    network text not null,
    slot integer not null,
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
    primary key (app_id, environment, grain, bucket, network, slot)
) strict, without rowid;

create table rollup_credits_by_grain (
    app_id blob not null,
    environment text not null,
    grain integer not null,
    bucket integer not null,
    network text not null,
    link_id blob not null,
    campaign_id text not null,
    adset_id text not null,
    ad_id text not null,
    slot integer not null,
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
    primary key (app_id, environment, grain, bucket, network, link_id, campaign_id, adset_id, ad_id, slot)
) strict, without rowid;

create table rollup_names_by_grain (
    app_id blob not null,
    environment text not null,
    grain integer not null,
    bucket integer not null,
    source text not null,
    name text not null,
    slot integer not null,
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
    primary key (app_id, environment, grain, bucket, source, name, slot)
) strict, without rowid;

create table rollup_places_by_grain (
    app_id blob not null,
    environment text not null,
    grain integer not null,
    bucket integer not null,
    country text not null,
    platform text not null,
    slot integer not null,
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
    primary key (app_id, environment, grain, bucket, country, platform, slot)
) strict, without rowid;

-- What was counted so far. Events before 1970 do not occur.
create temporary table grains as select 15 as minutes union all select 60 union all select 1440;

insert into rollup_networks (app_id, environment, grain, bucket, network, slot, clicks, installs, organic_installs, sign_ups, trials, qualified_trials, subscriptions, purchases, renewals, refunds, events, paying_devices, revenue_micros, refunded_micros)
select app_id, environment, minutes, bucket - bucket % (minutes * 60000), network, 0, sum(clicks), sum(installs), sum(organic_installs), sum(sign_ups), sum(trials), sum(qualified_trials), sum(subscriptions), sum(purchases), sum(renewals), sum(refunds), sum(events), sum(paying_devices), sum(revenue_micros), sum(refunded_micros)
from rollup_credits cross join grains
group by 1, 2, 3, 4, 5;

insert into rollup_credits_by_grain (app_id, environment, grain, bucket, network, link_id, campaign_id, adset_id, ad_id, slot, clicks, installs, organic_installs, sign_ups, trials, qualified_trials, subscriptions, purchases, renewals, refunds, events, paying_devices, revenue_micros, refunded_micros)
select app_id, environment, minutes, bucket - bucket % (minutes * 60000), network, link_id, campaign_id, adset_id, ad_id, 0, sum(clicks), sum(installs), sum(organic_installs), sum(sign_ups), sum(trials), sum(qualified_trials), sum(subscriptions), sum(purchases), sum(renewals), sum(refunds), sum(events), sum(paying_devices), sum(revenue_micros), sum(refunded_micros)
from rollup_credits cross join grains
group by 1, 2, 3, 4, 5, 6, 7, 8, 9;

insert into rollup_names_by_grain (app_id, environment, grain, bucket, source, name, slot, clicks, installs, organic_installs, sign_ups, trials, qualified_trials, subscriptions, purchases, renewals, refunds, events, paying_devices, revenue_micros, refunded_micros)
select app_id, environment, minutes, bucket - bucket % (minutes * 60000), source, name, 0, sum(clicks), sum(installs), sum(organic_installs), sum(sign_ups), sum(trials), sum(qualified_trials), sum(subscriptions), sum(purchases), sum(renewals), sum(refunds), sum(events), sum(paying_devices), sum(revenue_micros), sum(refunded_micros)
from rollup_names cross join grains
group by 1, 2, 3, 4, 5, 6;

insert into rollup_places_by_grain (app_id, environment, grain, bucket, country, platform, slot, clicks, installs, organic_installs, sign_ups, trials, qualified_trials, subscriptions, purchases, renewals, refunds, events, paying_devices, revenue_micros, refunded_micros)
select app_id, environment, minutes, bucket - bucket % (minutes * 60000), country, platform, 0, sum(clicks), sum(installs), sum(organic_installs), sum(sign_ups), sum(trials), sum(qualified_trials), sum(subscriptions), sum(purchases), sum(renewals), sum(refunds), sum(events), sum(paying_devices), sum(revenue_micros), sum(refunded_micros)
from rollup_places cross join grains
group by 1, 2, 3, 4, 5, 6;

drop table grains;

drop table rollup_credits;
alter table rollup_credits_by_grain rename to rollup_credits;

drop table rollup_names;
alter table rollup_names_by_grain rename to rollup_names;

drop table rollup_places;
alter table rollup_places_by_grain rename to rollup_places;

-- Values from outside that a day of an app told apart, and those that count under `(other)`: decided when each
-- first came, and never again.
create table rollup_values (
    app_id blob not null,
    environment text not null,
    day integer not null,
    kind text not null,
    digest blob not null,
    is_other integer not null,
    primary key (app_id, environment, day, kind, digest)
) strict, without rowid;
create index rollup_values_told_apart on rollup_values (app_id, environment, day, kind)
    where is_other = 0;

-- Cohorts: devices by when they were installed, and what they did at each age, in days.

create table rollup_cohorts (
    app_id blob not null,
    environment text not null,
    grain integer not null,
    bucket integer not null,
    network text not null,
    link_id blob not null,
    campaign_id text not null,
    age integer not null,
    slot integer not null,
    devices integer not null,
    revenue_micros integer not null,
    refunded_micros integer not null,
    primary key (app_id, environment, grain, bucket, network, link_id, campaign_id, age, slot)
) strict, without rowid;

create table rollup_cohort_places (
    app_id blob not null,
    environment text not null,
    grain integer not null,
    bucket integer not null,
    country text not null,
    age integer not null,
    slot integer not null,
    devices integer not null,
    revenue_micros integer not null,
    refunded_micros integer not null,
    primary key (app_id, environment, grain, bucket, country, age, slot)
) strict, without rowid;

-- Devices that were installed. `ages` has a bit for each day that they were seen on.
create table cohort_devices (
    app_id blob not null,
    environment text not null,
    device_id text not null,
    installed_at integer not null,
    network text not null,
    link_id blob,
    campaign_id text not null,
    country text not null,
    ages blob not null,
    primary key (app_id, environment, device_id)
) strict, without rowid;
create index cohort_devices_by_install on cohort_devices (app_id, environment, installed_at);

-- What ads cost, as people told it. `cost_id` is made of day, network and campaign and begins with the day.
create table costs (
    app_id blob not null references apps (app_id),
    cost_id blob not null,
    day integer not null,
    network text not null,
    campaign_id text not null,
    amount_micros integer not null,
    currency text not null,
    usd_micros integer not null,
    rate_day integer not null,
    updated_at integer not null,
    primary key (app_id, cost_id)
) strict, without rowid;

create index events_by_user on events (app_id, environment, user_id, event_id) where user_id is not null;
