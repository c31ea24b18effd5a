-- The environment of the changed data: a test key reads entries of the test environment only. Entries of test keys are
-- theirs; everything else, above all changes to settings, is live.
alter table audit_log add column environment text collate "C" not null default 'live';
update audit_log set environment = 'test'
where actor_kind = 'key' and actor_id in (select key_id from api_keys where environment = 'test');

-- The schemes that an app's deep links may use: those that its links use today, so that every link can still be saved.
update apps set settings = jsonb_set(settings::jsonb, '{deep_link_schemes}', schemes.list)::text
from (
    select app_id, jsonb_agg(scheme order by scheme) as list from (
        select distinct app_id, lower(split_part(settings::jsonb ->> 'deep_link', ':', 1)) as scheme
        from links where settings::jsonb ->> 'deep_link' is not null) as used
    where scheme <> 'https'
    group by app_id) as schemes
where schemes.app_id = apps.app_id;
