-- Compatible from: 29
-- When a user last signed in, and when the user's known browsers were last forgotten.
alter table users add column last_sign_in_at integer;
alter table users add column browsers_forgotten_at integer;

-- One-time links for setting a new password, by the digest of their token. A used link is removed.
create table password_resets (
    digest blob not null,
    email text not null,
    expires_at integer not null,
    primary key (digest)
) strict, without rowid;

insert into sqlite_stat1 (tbl, idx, stat) values
    ('password_resets', 'password_resets', '10 1');
analyze sqlite_schema;
