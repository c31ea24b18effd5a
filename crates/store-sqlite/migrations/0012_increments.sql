-- What was counted and is not in the roll-ups yet, a text for each batch and app. Whoever reads the roll-ups has it
-- added to them first.
create table rollup_increments (
    -- Begins anew whenever the table is empty: the last one says how many there are.
    increment_id integer primary key,
    app_id blob not null,
    body text not null
) strict;
