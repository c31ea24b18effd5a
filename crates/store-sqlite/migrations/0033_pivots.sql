-- Compatible from: 28
-- Figures by network, campaign, country and platform. Events are counted there from now on.
create table rollup_pivots (
    app_id blob not null,
    environment text not null,
    grain integer not null,
    bucket integer not null,
    network text not null,
    campaign_id text not null,
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
    held_installs integer not null,
    held_revenue_micros integer not null,
    primary key (app_id, environment, grain, bucket, network, campaign_id, country, platform, slot)
) strict, without rowid;

-- Apps whose events from before this migration are not all counted in `rollup_pivots`. The table counts every event from
-- `complete_from` on. A worker counts the earlier ones, latest first, and deletes the row at the end. `version` changes
-- with every step and every rebuild, so that a step that began before has no effect.
create table pivot_history (
    app_id blob not null,
    complete_from integer not null,
    due_at integer not null,
    version integer not null,
    primary key (app_id)
) strict, without rowid;

-- The time of an event may be ten minutes ahead, so the first whole day begins after that.
insert into pivot_history (app_id, complete_from, due_at, version)
select app_id, ((unixepoch() + 600) / 86400 + 1) * 86400000, 0, 0 from apps;
