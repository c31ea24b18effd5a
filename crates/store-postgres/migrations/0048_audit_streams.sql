-- Compatible from: 28
-- Streams of the audit log to a file or to syslog: which node has each stream, and how far it is in each chain.
create table audit_streams (
    stream text collate "C" not null,
    leased_until bigint not null,
    constraint audit_streams_pkey primary key (stream)
);

create table audit_stream_positions (
    stream text collate "C" not null,
    organization_id uuid not null,
    sequence bigint not null,
    constraint audit_stream_positions_pkey primary key (stream, organization_id)
);
