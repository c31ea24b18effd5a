-- Compatible from: 28
-- Who created a setup link, and who chose the channel of a notice, so that both end when the person is removed. Null in
-- rows of the operator and of programs of the version before.
alter table setup_links add column created_by uuid;
alter table notices add column owner_id uuid;
