-- Compatible from: 28
-- Costs that are imported from the networks' reports. Programs before this migration add imported costs to manual ones
-- of the same day until they are replaced.
alter table costs add column source text collate "C" not null default 'manual';
-- An app's access to a network's cost report. `due_at` is the next pull, or the end of the lease of the current one; null
-- if the source is off or paused.
create table cost_sources (
    app_id uuid not null,
    network text collate "C" not null,
    enabled boolean not null,
    settings text collate "C" not null,
    credentials text collate "C" not null,
    due_at bigint,
    last_pull_at bigint,
    last_success_at bigint,
    pulled_until integer,
    failures bigint not null,
    problem text collate "C",
    updated_at bigint not null,
    revision bigint not null,
    constraint cost_sources_pkey primary key (app_id, network)
);
create index cost_sources_due on cost_sources (due_at) where due_at is not null;
