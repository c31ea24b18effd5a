-- The environment of the changed data: a test key reads entries of the test environment only. Entries of test keys are
-- theirs; everything else, above all changes to settings, is live.
alter table audit_log add column environment text not null default 'live';
update audit_log set environment = 'test'
where actor_kind = 'key' and actor_id in (select key_id from api_keys where environment = 'test');

-- The schemes that an app's deep links may use: those that its links use today, so that every link can still be saved.
update apps set settings = json_set(settings, '$.deep_link_schemes', json((
    select json_group_array(scheme) from (
        select distinct lower(substr(deep_link, 1, instr(deep_link, ':') - 1)) as scheme from (
            select json_extract(links.settings, '$.deep_link') as deep_link from links
            where links.app_id = apps.app_id)
        where deep_link is not null and scheme <> 'https'
        order by scheme))))
where exists (
    select 1 from links
    where links.app_id = apps.app_id and json_extract(links.settings, '$.deep_link') is not null);
