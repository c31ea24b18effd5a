-- Compatible from: 28
-- The days on which each device paid, and the devices that pay for the first time at each age. A node of an earlier
-- version counts nothing there.
alter table cohort_devices add column paid_ages bytea;
alter table rollup_cohorts add column payers bigint not null default 0;
alter table rollup_cohort_places add column payers bigint not null default 0;

-- Apps whose payers are not all counted: those of installs before `complete_from` may be missing. A worker counts them,
-- latest installs first, and deletes the row at the end.
create table payer_history (
    app_id uuid not null,
    complete_from bigint not null,
    due_at bigint not null,
    constraint payer_history_pkey primary key (app_id)
);

-- Nodes of the earlier version may run for another day, so counting the payers of earlier installs starts after that.
insert into payer_history (app_id, complete_from, due_at)
select app_id, first_day, first_day
from apps, (select (floor((extract(epoch from now()) + 600) / 86400)::bigint + 2) * 86400000 as first_day) as days;
