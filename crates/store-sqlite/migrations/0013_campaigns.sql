-- Figures by network, link and campaign. An app has many times as many ads, and most questions are about none of them:
-- the overview read four hundred rows of a day to say which links and campaigns did best.
create table rollup_campaigns (
    app_id blob not null,
    environment text not null,
    grain integer not null,
    bucket integer not null,
    network text not null,
    link_id blob not null,
    campaign_id text not null,
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
    primary key (app_id, environment, grain, bucket, network, link_id, campaign_id, slot)
) strict, without rowid;

insert into rollup_campaigns (app_id, environment, grain, bucket, network, link_id, campaign_id, slot,
    clicks, installs, organic_installs, sign_ups, trials, qualified_trials, subscriptions, purchases, renewals,
    refunds, events, paying_devices, revenue_micros, refunded_micros)
select app_id, environment, grain, bucket, network, link_id, campaign_id, 0,
    sum(clicks), sum(installs), sum(organic_installs), sum(sign_ups), sum(trials), sum(qualified_trials),
    sum(subscriptions), sum(purchases), sum(renewals), sum(refunds), sum(events), sum(paying_devices),
    sum(revenue_micros), sum(refunded_micros)
from rollup_credits
group by 1, 2, 3, 4, 5, 6, 7;
