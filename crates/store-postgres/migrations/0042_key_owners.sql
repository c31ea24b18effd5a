-- Compatible from: 28
-- Who created an API key and who answers for it, the range of the address that last used it, its limits (apps and address
-- ranges, separated by spaces), and the key that replaced it. Nodes of earlier versions ignore the limits.
alter table api_keys add column last_used_from text collate "C";
alter table api_keys add column created_by_kind text collate "C";
alter table api_keys add column created_by_id uuid;
alter table api_keys add column owner_id uuid;
alter table api_keys add column apps text collate "C";
alter table api_keys add column addresses text collate "C";
alter table api_keys add column successor_id uuid;
