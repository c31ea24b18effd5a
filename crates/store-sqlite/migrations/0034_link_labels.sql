-- Compatible from: 29
-- Tags of a link as a JSON list, null without tags; and the folder that contains it.
alter table links add column tags text;
alter table links add column folder text;
