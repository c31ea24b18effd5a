-- Figures by network, link and campaign. An app has many times as many ads, and most questions are about none of them:
-- the overview read four hundred rows of a day to say which links and campaigns did best.
create table rollup_campaigns (
    app_id uuid not null,
    environment text collate "C" not null,
    grain smallint not null,
    bucket bigint not null,
    network text collate "C" not null,
    link_id uuid not null,
    -- Stands for the campaign in the key: an id from outside may be longer than an index takes.
    campaign_digest bytea not null,
    campaign_id text collate "C" not null,
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
    constraint rollup_campaigns_pkey
        primary key (app_id, environment, grain, bucket, network, link_id, campaign_digest, slot)
);

-- Whoever is adding to it finishes first.
lock table rollup_credits in share row exclusive mode;
insert into rollup_campaigns (app_id, environment, grain, bucket, network, link_id, campaign_digest, campaign_id, slot,
    clicks, installs, organic_installs, sign_ups, trials, qualified_trials, subscriptions, purchases, renewals,
    refunds, events, paying_devices, revenue_micros, refunded_micros)
select app_id, environment, grain, bucket, network, link_id,
    sha256(convert_to(campaign_id, 'UTF8') || '\x0000'), campaign_id, 0,
    sum(clicks)::bigint, sum(installs)::bigint, sum(organic_installs)::bigint, sum(sign_ups)::bigint,
    sum(trials)::bigint, sum(qualified_trials)::bigint, sum(subscriptions)::bigint, sum(purchases)::bigint,
    sum(renewals)::bigint, sum(refunds)::bigint, sum(events)::bigint, sum(paying_devices)::bigint,
    sum(revenue_micros)::bigint, sum(refunded_micros)::bigint
from rollup_credits
group by 1, 2, 3, 4, 5, 6, 7, 8;
