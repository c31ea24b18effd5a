-- Compatible from: 28
-- What a rotation of the secret key needs: which keys each node knows, and the secrets that alerts are signed with,
-- encrypted. Earlier versions derive those secrets and know one key, so they must be replaced before a rotation.
create table key_holders (
    node_id uuid not null,
    name text collate "C" not null,
    keys bytea not null,
    seen_at bigint not null,
    constraint key_holders_pkey primary key (node_id)
);

create table alert_secrets (
    app_id uuid not null,
    sealed bytea not null,
    constraint alert_secrets_pkey primary key (app_id)
);
