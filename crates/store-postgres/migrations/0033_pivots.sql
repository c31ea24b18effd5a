-- Compatible from: 28
-- Figures by network, campaign, country and platform. A node of an earlier version counts nothing there, and drops
-- what newer nodes counted when it merges their increments.
create table rollup_pivots (
    app_id uuid not null,
    environment text collate "C" not null,
    grain smallint not null,
    bucket bigint not null,
    network text collate "C" not null,
    campaign_digest bytea not null,
    campaign_id text collate "C" not null,
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
    held_installs bigint not null,
    held_revenue_micros bigint not null,
    constraint rollup_pivots_pkey primary key (app_id, environment, grain, bucket, network, campaign_digest, country, platform, slot)
);

-- Apps whose events from before this migration are not all counted in `rollup_pivots`. The table counts every event from
-- `complete_from` on. A worker counts the earlier ones, latest first, and deletes the row at the end. `version` changes
-- with every step and every rebuild, so that a step that began before has no effect.
create table pivot_history (
    app_id uuid not null,
    complete_from bigint not null,
    due_at bigint not null,
    version bigint not null,
    constraint pivot_history_pkey primary key (app_id)
);

-- Nodes of the earlier version may run for another day, so the first complete day begins after that. Filling the days
-- before it starts then, too.
insert into pivot_history (app_id, complete_from, due_at, version)
select app_id, first_day, first_day, 0
from apps, (select (floor((extract(epoch from now()) + 600) / 86400)::bigint + 2) * 86400000 as first_day) as days;
