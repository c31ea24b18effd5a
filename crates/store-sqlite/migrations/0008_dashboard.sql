-- The dashboard: people who are signed in. What a session is found by is the digest of its token.

create table sessions (
    digest blob primary key,
    user_id blob not null references users (user_id),
    created_at integer not null,
    last_seen_at integer not null,
    expires_at integer not null
) strict, without rowid;
create index sessions_by_user on sessions (user_id);
create index sessions_by_end on sessions (expires_at);

create index setup_links_by_organization on setup_links (organization_id);
