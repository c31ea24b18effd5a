-- The keys that lead to subscriptions: people, devices and advertising ids that notifications name or were joined by.
create table billing_keys (
    app_id blob not null references apps (app_id),
    environment text not null,
    lookup_key text not null,
    provider text not null,
    chain text not null,
    primary key (app_id, environment, lookup_key, provider, chain)
) strict, without rowid;
insert or ignore into billing_keys
    select app_id, environment, 'person:' || named.value, provider, chain
    from notifications, json_each(facts, '$.people') as named;
insert or ignore into billing_keys
    select app_id, environment, 'advertising:' || named.value, provider, chain
    from notifications, json_each(facts, '$.advertising') as named;
insert or ignore into billing_keys
    select app_id, environment, 'person:' || named.value, provider, chain
    from notifications, json_each(facts, '$.meaning.transfer[0]') as named;
insert or ignore into billing_keys
    select app_id, environment, 'person:' || named.value, provider, chain
    from notifications, json_each(facts, '$.meaning.transfer[1]') as named;
insert or ignore into billing_keys
    select app_id, environment, 'device:' || json_extract(facts, '$.device'), provider, chain
    from notifications where json_extract(facts, '$.device') is not null;
insert or ignore into billing_keys
    select app_id, environment, 'device:' || json_extract(facts, '$.join[0]'), provider, chain
    from notifications where json_extract(facts, '$.join[0]') is not null;
-- They are derived from the notifications now.
drop table billing_payments;
drop table billing_waiting;
drop table user_transfers;
