-- What was counted and is not in the roll-ups yet, a text for each transaction and app. Whoever reads the roll-ups has
-- it added to them first, in the order of these ids: whoever builds on what another transaction recorded comes later.
create table rollup_increments (
    app_id uuid not null,
    increment_id bigint generated always as identity,
    body text collate "C" not null,
    primary key (app_id, increment_id)
);
-- They are gone within a second: to compress them costs more than it saves, and what they leave behind is cleared early.
alter table rollup_increments alter column body set storage external;
alter table rollup_increments set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
