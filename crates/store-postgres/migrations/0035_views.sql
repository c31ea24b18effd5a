-- Compatible from: 28
-- Reports with dates and filters that users saved.
create table saved_views (
    view_id uuid not null,
    user_id uuid not null,
    app_id uuid not null,
    name text collate "C" not null,
    page text collate "C" not null,
    query text collate "C" not null,
    created_at bigint not null,
    constraint saved_views_pkey primary key (view_id)
);

create unique index saved_views_name on saved_views (user_id, app_id, name);

-- Links that show an overview to people without an account, by the SHA-256 of the token.
create table share_links (
    digest bytea not null,
    share_id uuid not null,
    organization_id uuid not null,
    app_id uuid not null,
    environment text collate "C" not null,
    name text collate "C" not null,
    query text collate "C" not null,
    created_by uuid not null,
    created_at bigint not null,
    expires_at bigint not null,
    revoked_at bigint,
    constraint share_links_pkey primary key (digest)
);

create index share_links_app on share_links (app_id, share_id);
create index share_links_user on share_links (created_by);
