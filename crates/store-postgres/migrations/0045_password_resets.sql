-- Compatible from: 28
-- When a user last signed in, and when the user's known browsers were last forgotten.
alter table users add column last_sign_in_at bigint;
alter table users add column browsers_forgotten_at bigint;

-- One-time links for setting a new password, by the digest of their token. A used link is removed.
create table password_resets (
    digest bytea not null,
    email text collate "C" not null,
    expires_at bigint not null,
    constraint password_resets_pkey primary key (digest)
);
