-- Compatible from: 29
-- The provider of each organization, the identities that it vouched for, attempts that were used, and members who were
-- removed (by a digest of organization and email address). Earlier versions do not offer single sign-on and know no
-- other sessions than those with a password.
create table single_sign_on (
    organization_id blob not null,
    issuer text not null,
    client_id text not null,
    client_secret blob not null,
    email_domains text not null,
    default_role text not null,
    allows_passwords integer not null,
    created_at integer not null,
    updated_at integer not null,
    revision integer not null,
    primary key (organization_id)
) strict, without rowid;
create table single_sign_on_identities (
    organization_id blob not null,
    identity blob not null,
    user_id blob,
    linked_at integer not null,
    primary key (organization_id, identity)
) strict, without rowid;
create index single_sign_on_identities_by_user on single_sign_on_identities (user_id);
create table single_sign_on_attempts (
    attempt blob not null,
    expires_at integer not null,
    primary key (attempt)
) strict, without rowid;
create index single_sign_on_attempts_by_end on single_sign_on_attempts (expires_at);
create table removed_members (
    member blob not null,
    removed_at integer not null,
    primary key (member)
) strict, without rowid;
alter table sessions add column method text;

insert into sqlite_stat1 (tbl, idx, stat) values
    ('single_sign_on', 'single_sign_on', '100 1'),
    ('single_sign_on_identities', 'single_sign_on_identities', '1000 100 1'),
    ('single_sign_on_identities', 'single_sign_on_identities_by_user', '1000 1 1 1'),
    ('single_sign_on_attempts', 'single_sign_on_attempts', '1000 1'),
    ('single_sign_on_attempts', 'single_sign_on_attempts_by_end', '1000 1 1'),
    ('removed_members', 'removed_members', '1000 1');
analyze sqlite_schema;
