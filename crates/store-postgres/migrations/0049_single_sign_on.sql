-- Compatible from: 28
-- The provider of each organization, the identities that it vouched for, attempts that were used, and members who were
-- removed (by a digest of organization and email address). Earlier versions do not offer single sign-on and know no
-- other sessions than those with a password.
create table single_sign_on (
    organization_id uuid not null,
    issuer text collate "C" not null,
    client_id text collate "C" not null,
    client_secret bytea not null,
    email_domains text collate "C" not null,
    default_role text collate "C" not null,
    allows_passwords boolean not null,
    created_at bigint not null,
    updated_at bigint not null,
    revision bigint not null,
    constraint single_sign_on_pkey primary key (organization_id)
);
create table single_sign_on_identities (
    organization_id uuid not null,
    identity bytea not null,
    user_id uuid,
    linked_at bigint not null,
    constraint single_sign_on_identities_pkey primary key (organization_id, identity)
);
create index single_sign_on_identities_by_user on single_sign_on_identities (user_id);
create table single_sign_on_attempts (
    attempt bytea not null,
    expires_at bigint not null,
    constraint single_sign_on_attempts_pkey primary key (attempt)
);
create index single_sign_on_attempts_by_end on single_sign_on_attempts (expires_at);
create table removed_members (
    member bytea not null,
    removed_at bigint not null,
    constraint removed_members_pkey primary key (member)
);
alter table sessions add column method text collate "C";
