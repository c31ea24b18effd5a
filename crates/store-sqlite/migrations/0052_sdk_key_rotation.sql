-- Compatible from: 29
-- When a replaced SDK key ends, and when a key was last used. Programs of the version before accept a key that has ended,
-- until their node is replaced.
alter table sdk_keys add column expires_at integer;
alter table sdk_keys add column last_used_at integer;
create index sdk_keys_by_app on sdk_keys (app_id);
