-- Values that an app's settings mention: campaigns in links and costs, event names in mappings. They keep their own rows
-- when a day has more values than the reports distinguish.
create table known_values (
    app_id uuid not null,
    kind text collate "C" not null,
    value text collate "C" not null,
    constraint known_values_pkey primary key (app_id, kind, value)
);

insert into known_values (app_id, kind, value)
select app_id, 'campaign', campaign_id from costs where campaign_id <> ''
union
select app_id, 'campaign', settings::json ->> 'campaign_id' from links where settings::json ->> 'campaign_id' <> ''
union
select integrations.app_id, 'name', mapped.value ->> 'event'
from integrations, json_array_elements(integrations.event_mapping::json) as mapped
where integrations.event_mapping is not null and mapped.value ->> 'event' <> ''
union
select apps.app_id, 'name', named.value
from apps, json_array_elements_text(apps.settings::json -> 'revenue_events') as named
where named.value <> '';

-- Details of figures under `(other)` have negative grains.
create index rollup_credits_details on rollup_credits (app_id, campaign_id, environment, bucket) where grain = -1440;
create index rollup_names_details on rollup_names (app_id, name, environment, bucket) where grain = -1440;
