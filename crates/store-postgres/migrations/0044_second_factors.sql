-- Compatible from: 28
-- Second factors of users, with what their proofs are checked with, and the hashes of recovery codes.
-- Nodes of earlier versions ask for the password only.
create table factors (
    factor_id uuid not null,
    user_id uuid not null,
    kind text collate "C" not null,
    name text collate "C" not null,
    created_at bigint not null,
    last_used_at bigint,
    sealed_secret bytea,
    last_step bigint,
    constraint factors_pkey primary key (factor_id),
    constraint factors_user_fkey foreign key (user_id) references users (user_id) on delete cascade
);
create index factors_by_user on factors (user_id);

create table recovery_codes (
    user_id uuid not null,
    digest bytea not null,
    used_at bigint,
    constraint recovery_codes_pkey primary key (user_id, digest),
    constraint recovery_codes_user_fkey foreign key (user_id) references users (user_id) on delete cascade
);

alter table organizations add column is_factor_required boolean not null default false;
