-- The foundation: organizations, people and keys; apps, links, integrations, conversion values; audit log.
-- Ids are 16 bytes, times milliseconds since 1970 in UTC, JSON is text.

create table instance (
    name text primary key,
    value blob not null
) strict, without rowid;

create table organizations (
    organization_id blob primary key,
    name text not null,
    created_at integer not null
) strict, without rowid;

create table users (
    user_id blob primary key,
    organization_id blob not null references organizations (organization_id),
    email text not null unique,
    role text not null,
    password_hash text not null,
    created_at integer not null
) strict, without rowid;
create index users_by_organization on users (organization_id);

create table setup_links (
    digest blob primary key,
    organization_id blob not null references organizations (organization_id),
    role text not null,
    email text,
    expires_at integer not null,
    used_at integer
) strict, without rowid;

create table api_keys (
    key_id blob primary key,
    organization_id blob not null references organizations (organization_id),
    name text not null,
    permission text not null,
    environment text not null,
    hint text not null,
    digest blob not null unique,
    created_at integer not null,
    expires_at integer,
    revoked_at integer,
    last_used_at integer
) strict, without rowid;
create index api_keys_by_organization on api_keys (organization_id, key_id);

create table apps (
    app_id blob primary key,
    organization_id blob not null references organizations (organization_id),
    name text not null,
    archived integer not null,
    settings text not null,
    created_at integer not null,
    updated_at integer not null,
    revision integer not null
) strict, without rowid;
create index apps_by_organization on apps (organization_id, app_id);

-- What is looked up without knowing the app, and unique on the instance.
create table app_store_ids (
    app_store_id text primary key,
    app_id blob not null references apps (app_id)
) strict, without rowid;
create index app_store_ids_by_app on app_store_ids (app_id);

create table link_domains (
    link_domain text primary key,
    app_id blob not null references apps (app_id)
) strict, without rowid;
create index link_domains_by_app on link_domains (app_id);

create table sdk_keys (
    sdk_key text primary key,
    app_id blob not null references apps (app_id),
    environment text not null
) strict, without rowid;

create table app_secrets (
    app_id blob not null references apps (app_id),
    name text not null,
    sealed blob not null,
    set_at integer not null,
    primary key (app_id, name)
) strict, without rowid;

create table links (
    app_id blob not null references apps (app_id),
    link_id blob not null,
    slug text not null,
    name text not null,
    kind text not null,
    network text,
    active integer not null,
    settings text not null,
    created_at integer not null,
    updated_at integer not null,
    archived_at integer,
    revision integer not null,
    primary key (app_id, link_id)
) strict, without rowid;

-- A slug leads to its link for ever: also after the link has another one, or is archived.
create table link_slugs (
    slug text primary key,
    app_id blob not null,
    link_id blob not null,
    foreign key (app_id, link_id) references links (app_id, link_id)
) strict, without rowid;

create table integrations (
    app_id blob not null references apps (app_id),
    network text not null,
    enabled integer not null,
    scope text not null,
    settings text not null,
    credentials text not null,
    event_mapping text,
    updated_at integer not null,
    revision integer not null,
    primary key (app_id, network)
) strict, without rowid;

create table skan_configurations (
    app_id blob primary key references apps (app_id),
    version integer not null,
    revision integer not null,
    document text not null,
    updated_at integer not null
) strict, without rowid;

create table skan_versions (
    app_id blob not null references apps (app_id),
    version integer not null,
    document text not null,
    applies_from integer not null,
    primary key (app_id, version)
) strict, without rowid;

create table audit_log (
    organization_id blob not null references organizations (organization_id),
    audit_id blob not null,
    at integer not null,
    actor_kind text not null,
    actor_id blob,
    action text not null,
    app_id blob,
    target text not null,
    changes text not null,
    address text,
    request_id text,
    primary key (organization_id, audit_id)
) strict, without rowid;
create index audit_log_by_app on audit_log (organization_id, app_id, audit_id);
