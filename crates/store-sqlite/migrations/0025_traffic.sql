-- Traffic checks. The last hour that was compared, for each app.
create table traffic_checks (
    app_id blob primary key references apps (app_id),
    hour integer not null
) strict, without rowid;

-- Installs from the address with the most installs in an hour. The address itself is not kept.
create table traffic_peaks (
    app_id blob not null references apps (app_id),
    hour integer not null,
    installs integer not null,
    primary key (app_id, hour)
) strict, without rowid;

-- The latest anomaly of each subject: the app, a link or the fingerprint of an address.
create table traffic_anomalies (
    app_id blob not null references apps (app_id),
    kind text not null,
    subject text not null,
    figure text not null,
    hour integer not null,
    value integer not null,
    expected integer not null,
    -- Null while the figures are not normal again.
    ended_at integer,
    primary key (app_id, kind, subject)
) strict, without rowid;
