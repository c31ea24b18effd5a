-- Traffic checks. The last hour that was compared, for each app.
create table traffic_checks (
    app_id uuid not null,
    hour bigint not null,
    constraint traffic_checks_pkey primary key (app_id),
    constraint traffic_checks_app_fkey foreign key (app_id) references apps (app_id)
);

-- Installs from the address with the most installs in an hour. The address itself is not kept.
create table traffic_peaks (
    app_id uuid not null,
    hour bigint not null,
    installs bigint not null,
    constraint traffic_peaks_pkey primary key (app_id, hour),
    constraint traffic_peaks_app_fkey foreign key (app_id) references apps (app_id)
);

-- The latest anomaly of each subject: the app, a link or the fingerprint of an address.
create table traffic_anomalies (
    app_id uuid not null,
    kind text collate "C" not null,
    subject text collate "C" not null,
    figure text collate "C" not null,
    hour bigint not null,
    value bigint not null,
    expected bigint not null,
    -- Null while the figures are not normal again.
    ended_at bigint,
    constraint traffic_anomalies_pkey primary key (app_id, kind, subject),
    constraint traffic_anomalies_app_fkey foreign key (app_id) references apps (app_id)
);
