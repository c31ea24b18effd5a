-- Compatible from: 29
-- Second factors of users, with what their proofs are checked with, and the hashes of recovery codes.
-- Nodes of earlier versions ask for the password only.
create table factors (
    factor_id blob primary key,
    user_id blob not null references users (user_id) on delete cascade,
    kind text not null,
    name text not null,
    created_at integer not null,
    last_used_at integer,
    sealed_secret blob,
    last_step integer
) strict, without rowid;
create index factors_by_user on factors (user_id);

create table recovery_codes (
    user_id blob not null references users (user_id) on delete cascade,
    digest blob not null,
    used_at integer,
    primary key (user_id, digest)
) strict, without rowid;

alter table organizations add column is_factor_required integer not null default 0;
