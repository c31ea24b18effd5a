-- The keys that lead to subscriptions: people, devices and advertising ids that notifications name or were joined by.
create table billing_keys (
    app_id uuid not null,
    environment text collate "C" not null,
    lookup_key text collate "C" not null,
    provider text collate "C" not null,
    chain text collate "C" not null,
    constraint billing_keys_pkey primary key (app_id, environment, lookup_key, provider, chain),
    constraint billing_keys_app_fkey foreign key (app_id) references apps (app_id)
);
insert into billing_keys
    select app_id, environment, 'person:' || named.value, provider, chain
    from notifications,
         jsonb_array_elements_text(coalesce(facts::jsonb -> 'people', '[]')) as named (value)
    on conflict do nothing;
insert into billing_keys
    select app_id, environment, 'advertising:' || named.value, provider, chain
    from notifications,
         jsonb_array_elements_text(coalesce(facts::jsonb -> 'advertising', '[]')) as named (value)
    on conflict do nothing;
insert into billing_keys
    select app_id, environment, 'person:' || named.value, provider, chain
    from notifications,
         jsonb_array_elements(case when jsonb_typeof(facts::jsonb -> 'meaning') = 'object'
                              then coalesce(facts::jsonb -> 'meaning' -> 'transfer', '[]')
                              else '[]' end) as side (names),
         jsonb_array_elements_text(side.names) as named (value)
    on conflict do nothing;
insert into billing_keys
    select app_id, environment, 'device:' || named.value, provider, chain
    from notifications,
         unnest(array[facts::jsonb ->> 'device', facts::jsonb -> 'join' ->> 0]) as named (value)
    where named.value is not null
    on conflict do nothing;
-- They are derived from the notifications now.
drop table billing_payments;
drop table billing_waiting;
drop table user_transfers;
