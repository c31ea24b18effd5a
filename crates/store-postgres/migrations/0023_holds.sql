-- Flagged installs that are held for a review. The state of the hold is stored with the device, and with each event
-- that is credited to its install, which decides how the event counts. Null: never held.
alter table devices
    add column hold text collate "C",
    -- When the install was held, and who decided about it when, as JSON.
    add column hold_details text collate "C";
alter table events add column hold text collate "C";
create index devices_by_hold on devices (app_id, environment, hold, attribution_id) where hold is not null;

-- Flagged installs of apps that withhold their events wait for a review from now on. What was counted stays counted.
update devices
set hold = 'held',
    hold_details = json_build_object('held_at', decided_at, 'decided_at', null, 'decided_by', null)::text
where jsonb_array_length(coalesce(decision::jsonb -> 'flags', '[]')) > 0
  and app_id in (select app_id from apps where settings::jsonb ->> 'fraud' = 'hold');

alter table rollup_networks
    add column held_installs bigint not null default 0,
    add column held_revenue_micros bigint not null default 0;
alter table rollup_campaigns
    add column held_installs bigint not null default 0,
    add column held_revenue_micros bigint not null default 0;
alter table rollup_credits
    add column held_installs bigint not null default 0,
    add column held_revenue_micros bigint not null default 0;
alter table rollup_names
    add column held_installs bigint not null default 0,
    add column held_revenue_micros bigint not null default 0;
alter table rollup_places
    add column held_installs bigint not null default 0,
    add column held_revenue_micros bigint not null default 0;
