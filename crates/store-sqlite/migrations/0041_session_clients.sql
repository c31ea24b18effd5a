-- Compatible from: 29
-- Where a session was last used from: browser and system, and the range of the address.
alter table sessions add column browser text;
alter table sessions add column network text;
