-- Events that two sources report: the verified event that an SDK event duplicates, and the earlier event whose id is
-- the root of the later one's deduplication ids.
alter table events add column duplicate_of blob;
alter table events add column dedup_root blob;

-- An SDK event that a website or a billing provider may report too reserves its id among the ids of web events: a key
-- of source web without a fingerprint.
insert into event_keys (app_id, environment, source, given_id, event_id)
select app_id, environment, 'web', given_id, event_id from events
where source = 'sdk'
  and name in ('purchase', 'subscribe', 'renewal', 'refund', 'sign_up', 'start_trial', 'checkout_started')
on conflict do nothing;
