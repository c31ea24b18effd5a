-- Compatible from: 29
-- Who created an API key and who answers for it, the range of the address that last used it, its limits (apps and address
-- ranges, separated by spaces), and the key that replaced it. Nodes of earlier versions ignore the limits.
alter table api_keys add column last_used_from text;
alter table api_keys add column created_by_kind text;
alter table api_keys add column created_by_id blob;
alter table api_keys add column owner_id blob;
alter table api_keys add column apps text;
alter table api_keys add column addresses text;
alter table api_keys add column successor_id blob;
