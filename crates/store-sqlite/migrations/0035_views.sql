-- Compatible from: 28
-- Reports with dates and filters that users saved.
create table saved_views (
    view_id blob not null,
    user_id blob not null,
    app_id blob not null,
    name text not null,
    page text not null,
    query text not null,
    created_at integer not null,
    primary key (view_id)
) strict, without rowid;

create unique index saved_views_name on saved_views (user_id, app_id, name);

-- Links that show an overview to people without an account, by the SHA-256 of the token.
create table share_links (
    digest blob not null,
    share_id blob not null,
    organization_id blob not null,
    app_id blob not null,
    environment text not null,
    name text not null,
    query text not null,
    created_by blob not null,
    created_at integer not null,
    expires_at integer not null,
    revoked_at integer,
    primary key (digest)
) strict, without rowid;

create index share_links_app on share_links (app_id, share_id);
create index share_links_user on share_links (created_by);
