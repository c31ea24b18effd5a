-- Compatible from: 29
-- Costs that are imported from the networks' reports.
alter table costs add column source text not null default 'manual';
-- An app's access to a network's cost report. `due_at` is the next pull, or the end of the lease of the current one; null
-- if the source is off or paused.
create table cost_sources (
    app_id blob not null,
    network text not null,
    enabled integer not null,
    settings text not null,
    credentials text not null,
    due_at integer,
    last_pull_at integer,
    last_success_at integer,
    pulled_until integer,
    failures integer not null,
    problem text,
    updated_at integer not null,
    revision integer not null,
    primary key (app_id, network)
) strict, without rowid;
create index cost_sources_due on cost_sources (due_at) where due_at is not null;
