-- Events in conversion-value mappings are known, too.
insert into known_values (app_id, kind, value)
select skan.app_id, 'name', windows.value -> 'lock_on' ->> 'event'
from skan_configurations as skan, json_array_elements(skan.document::json -> 'windows') as windows
where windows.value -> 'lock_on' ->> 'event' <> ''
union
select skan.app_id, 'name', conditions.value ->> 'event'
from skan_configurations as skan, json_array_elements(skan.document::json -> 'windows') as windows,
    json_array_elements(windows.value -> 'values') as named, json_array_elements(named.value -> 'conditions') as conditions
where conditions.value ->> 'event' <> ''
on conflict (app_id, kind, value) do nothing;
