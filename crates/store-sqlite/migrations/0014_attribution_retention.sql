-- The last known activity of a device whose attribution data has not been forgotten yet. Null: nothing is left to
-- forget. It may be older than the latest event; the retention worker looks that up before it forgets anything.
alter table devices add column active_at integer;
update devices set active_at = last_seen_at;
create index devices_by_activity on devices (active_at) where active_at is not null;

-- The same for user ids and matching hashes, which may arrive before a device is configured.
alter table identities add column active_at integer;
update identities set active_at = updated_at;
create index identities_by_activity on identities (active_at) where active_at is not null;
