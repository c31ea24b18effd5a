-- Store transactions lead to the subscriptions whose notifications name them, so that an SDK event of the same id finds
-- the billing event.
insert into billing_keys (app_id, environment, lookup_key, provider, chain)
select app_id, environment, 'transaction:' || (facts::jsonb ->> 'transaction'), provider, chain
from notifications
where facts::jsonb ->> 'transaction' is not null
on conflict do nothing;

-- A billing event reserves its transaction among the ids of web events: a key of source web without a fingerprint, for
-- no event.
insert into event_keys (app_id, environment, source, given_id, event_id)
select app_id, environment, 'web', facts::jsonb ->> 'transaction', '00000000-0000-0000-0000-000000000000'::uuid
from notifications
where facts::jsonb ->> 'transaction' is not null
  and facts::jsonb -> 'standing' ->> 'name'
      in ('purchase', 'subscribe', 'renewal', 'refund', 'sign_up', 'start_trial', 'checkout_started')
on conflict do nothing;
