-- Compatible from: 29
-- Streams of the audit log to a file or to syslog: which node has each stream, and how far it is in each chain.
create table audit_streams (
    stream text not null,
    leased_until integer not null,
    primary key (stream)
) strict, without rowid;

create table audit_stream_positions (
    stream text not null,
    organization_id blob not null,
    sequence integer not null,
    primary key (stream, organization_id)
) strict, without rowid;

insert into sqlite_stat1 (tbl, idx, stat) values
    ('audit_streams', 'audit_streams', '2 1'),
    ('audit_stream_positions', 'audit_stream_positions', '1000 500 1');
analyze sqlite_schema;
