-- Compatible from: 28
-- The days on which each device paid, and the devices that pay for the first time at each age. Both are counted from now
-- on.
alter table cohort_devices add column paid_ages blob;
alter table rollup_cohorts add column payers integer not null default 0;
alter table rollup_cohort_places add column payers integer not null default 0;

-- Apps whose payers are not all counted: those of installs before `complete_from` may be missing. A worker counts them,
-- latest installs first, and deletes the row at the end.
create table payer_history (
    app_id blob not null,
    complete_from integer not null,
    due_at integer not null,
    primary key (app_id)
) strict, without rowid;

-- The time of an install may be ten minutes ahead.
insert into payer_history (app_id, complete_from, due_at)
select app_id, ((unixepoch() + 600) / 3600 + 1) * 3600000, 0 from apps;
