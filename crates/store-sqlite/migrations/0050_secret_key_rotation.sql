-- Compatible from: 29
-- What a rotation of the secret key needs: which keys each node knows, and the secrets that alerts are signed with,
-- encrypted. Earlier versions derive those secrets and know one key, so they must be replaced before a rotation.
create table key_holders (
    node_id blob not null,
    name text not null,
    keys blob not null,
    seen_at integer not null,
    primary key (node_id)
) strict, without rowid;

create table alert_secrets (
    app_id blob not null,
    sealed blob not null,
    primary key (app_id)
) strict, without rowid;

insert into sqlite_stat1 (tbl, idx, stat) values
    ('key_holders', 'key_holders', '10 1'),
    ('alert_secrets', 'alert_secrets', '100 1');
analyze sqlite_schema;
