-- The dashboard: people who are signed in. What a session is found by is the digest of its token. With Citus a
-- reference table, as users are.

create table sessions (
    digest bytea not null,
    user_id uuid not null,
    created_at bigint not null,
    last_seen_at bigint not null,
    expires_at bigint not null,
    constraint sessions_pkey primary key (digest),
    constraint sessions_user_fkey foreign key (user_id) references users (user_id)
);
create index sessions_by_user on sessions (user_id);
create index sessions_by_end on sessions (expires_at);

create index setup_links_by_organization on setup_links (organization_id);
