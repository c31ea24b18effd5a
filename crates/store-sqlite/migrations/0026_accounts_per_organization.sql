-- An email address may have one account per organization. A unique address on the whole server would
-- tell every organization which addresses have an account elsewhere.

create table new_users (
    user_id blob primary key,
    organization_id blob not null references organizations (organization_id),
    email text not null,
    role text not null,
    password_hash text not null,
    created_at integer not null,
    unique (email, organization_id)
) strict, without rowid;
insert into new_users select user_id, organization_id, email, role, password_hash, created_at from users;

-- Sessions refer to users, so both tables are replaced.
create table new_sessions (
    digest blob primary key,
    user_id blob not null references new_users (user_id),
    created_at integer not null,
    last_seen_at integer not null,
    expires_at integer not null
) strict, without rowid;
insert into new_sessions select digest, user_id, created_at, last_seen_at, expires_at from sessions;

drop table sessions;
drop table users;
alter table new_users rename to users;
alter table new_sessions rename to sessions;
create index users_by_organization on users (organization_id);
create index sessions_by_user on sessions (user_id);
create index sessions_by_end on sessions (expires_at);
