-- The foundation: organizations, people and keys; apps, links, integrations, conversion values; audit log.
-- Ids are uuids, which compare byte by byte like our ids do; times are milliseconds since 1970 in UTC;
-- JSON is text. Text compares byte by byte whatever the database's language is: hence collate "C".
--
-- The same schema can be spread over several machines with Citus:
--
-- * Reference tables, small and on every machine, because they are looked up without knowing the app or are
--   what everything else refers to: instance, organizations, users, setup_links, api_keys, app_store_ids,
--   link_domains, sdk_keys, link_slugs.
-- * Distributed by app_id, which is first in every primary key: apps, app_secrets, links, integrations,
--   skan_configurations, skan_versions. What belongs to an app is on one machine.
-- * Distributed by organization_id: audit_log.
--
-- A reference table cannot refer to a distributed one. That is why the four tables of names have no foreign
-- key, unlike in SQLite: the transaction that writes a name also writes or locks what it leads to, and
-- neither apps nor links are ever deleted.

create table instance (
    name text collate "C" not null,
    value bytea not null,
    constraint instance_pkey primary key (name)
);

create table organizations (
    organization_id uuid not null,
    name text collate "C" not null,
    created_at bigint not null,
    constraint organizations_pkey primary key (organization_id)
);

create table users (
    user_id uuid not null,
    organization_id uuid not null,
    email text collate "C" not null,
    role text collate "C" not null,
    password_hash text collate "C" not null,
    created_at bigint not null,
    constraint users_pkey primary key (user_id),
    constraint users_email_unique unique (email),
    constraint users_organization_fkey
        foreign key (organization_id) references organizations (organization_id)
);
create index users_by_organization on users (organization_id);

create table setup_links (
    digest bytea not null,
    organization_id uuid not null,
    role text collate "C" not null,
    email text collate "C",
    expires_at bigint not null,
    used_at bigint,
    constraint setup_links_pkey primary key (digest),
    constraint setup_links_organization_fkey
        foreign key (organization_id) references organizations (organization_id)
);

create table api_keys (
    key_id uuid not null,
    organization_id uuid not null,
    name text collate "C" not null,
    permission text collate "C" not null,
    environment text collate "C" not null,
    hint text collate "C" not null,
    digest bytea not null,
    created_at bigint not null,
    expires_at bigint,
    revoked_at bigint,
    last_used_at bigint,
    constraint api_keys_pkey primary key (key_id),
    constraint api_keys_digest_unique unique (digest),
    constraint api_keys_organization_fkey
        foreign key (organization_id) references organizations (organization_id)
);
create index api_keys_by_organization on api_keys (organization_id, key_id);

create table apps (
    app_id uuid not null,
    organization_id uuid not null,
    name text collate "C" not null,
    archived boolean not null,
    settings text collate "C" not null,
    created_at bigint not null,
    updated_at bigint not null,
    revision bigint not null,
    constraint apps_pkey primary key (app_id),
    constraint apps_organization_fkey
        foreign key (organization_id) references organizations (organization_id)
);
create index apps_by_organization on apps (organization_id, app_id);

-- What is looked up without knowing the app, and unique on the instance.
create table app_store_ids (
    app_store_id text collate "C" not null,
    app_id uuid not null,
    constraint app_store_ids_pkey primary key (app_store_id)
);
create index app_store_ids_by_app on app_store_ids (app_id);

create table link_domains (
    link_domain text collate "C" not null,
    app_id uuid not null,
    constraint link_domains_pkey primary key (link_domain)
);
create index link_domains_by_app on link_domains (app_id);

create table sdk_keys (
    sdk_key text collate "C" not null,
    app_id uuid not null,
    environment text collate "C" not null,
    constraint sdk_keys_pkey primary key (sdk_key)
);

create table app_secrets (
    app_id uuid not null,
    name text collate "C" not null,
    sealed bytea not null,
    set_at bigint not null,
    constraint app_secrets_pkey primary key (app_id, name),
    constraint app_secrets_app_fkey foreign key (app_id) references apps (app_id)
);

create table links (
    app_id uuid not null,
    link_id uuid not null,
    slug text collate "C" not null,
    name text collate "C" not null,
    kind text collate "C" not null,
    network text collate "C",
    active boolean not null,
    settings text collate "C" not null,
    created_at bigint not null,
    updated_at bigint not null,
    archived_at bigint,
    revision bigint not null,
    constraint links_pkey primary key (app_id, link_id),
    constraint links_app_fkey foreign key (app_id) references apps (app_id)
);

-- A slug leads to its link for ever: also after the link has another one, or is archived.
create table link_slugs (
    slug text collate "C" not null,
    app_id uuid not null,
    link_id uuid not null,
    constraint link_slugs_pkey primary key (slug)
);

create table integrations (
    app_id uuid not null,
    network text collate "C" not null,
    enabled boolean not null,
    scope text collate "C" not null,
    settings text collate "C" not null,
    credentials text collate "C" not null,
    event_mapping text collate "C",
    updated_at bigint not null,
    revision bigint not null,
    constraint integrations_pkey primary key (app_id, network),
    constraint integrations_app_fkey foreign key (app_id) references apps (app_id)
);

create table skan_configurations (
    app_id uuid not null,
    version bigint not null,
    revision bigint not null,
    document text collate "C" not null,
    updated_at bigint not null,
    constraint skan_configurations_pkey primary key (app_id),
    constraint skan_configurations_app_fkey foreign key (app_id) references apps (app_id)
);

create table skan_versions (
    app_id uuid not null,
    version bigint not null,
    document text collate "C" not null,
    applies_from bigint not null,
    constraint skan_versions_pkey primary key (app_id, version),
    constraint skan_versions_app_fkey foreign key (app_id) references apps (app_id)
);

create table audit_log (
    organization_id uuid not null,
    audit_id uuid not null,
    at bigint not null,
    actor_kind text collate "C" not null,
    actor_id uuid,
    action text collate "C" not null,
    app_id uuid,
    target text collate "C" not null,
    changes text collate "C" not null,
    address text collate "C",
    request_id text collate "C",
    constraint audit_log_pkey primary key (organization_id, audit_id),
    constraint audit_log_organization_fkey
        foreign key (organization_id) references organizations (organization_id)
);
create index audit_log_by_app on audit_log (organization_id, app_id, audit_id);
