-- Compatible from: 28
-- Where a session was last used from: browser and system, and the range of the address.
alter table sessions add column browser text collate "C";
alter table sessions add column network text collate "C";
