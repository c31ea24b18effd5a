-- Postbacks of SKAdNetwork and AdAttributionKit, what they count, and those of no app that is known yet.
--
-- On several machines everything here is distributed by app_id, but for unclaimed_postbacks, which belongs to no app
-- and is a reference table.

-- What is searched is a column; everything a postback says is in `postback`, and the bytes that came in `body`.
create table postbacks (
    app_id uuid not null,
    -- Begins with the time of arrival.
    postback_id uuid not null,
    received_at bigint not null,
    protocol text collate "C" not null,
    signature text collate "C" not null,
    -- trusted, test or untrusted.
    trust text collate "C" not null,
    -- When it counts: always, with_tests or without_tests (the app's switch), never.
    counting text collate "C" not null,
    -- True: another body came under its key before, trusted no less. Such a one never counts.
    conflicting boolean not null,
    key_digest bytea not null,
    body_digest bytea not null,
    ad_network_id text collate "C" not null,
    source_identifier text collate "C",
    sequence_index bigint not null,
    did_win boolean not null,
    conversion_type text collate "C" not null,
    postback text collate "C" not null,
    body text collate "C" not null,
    constraint postbacks_pkey primary key (app_id, postback_id),
    constraint postbacks_key_unique unique (app_id, key_digest, body_digest),
    constraint postbacks_app_fkey foreign key (app_id) references apps (app_id)
);
create index postbacks_by_network on postbacks (app_id, ad_network_id, postback_id);
-- People look for what does not verify; what does is nearly all of it.
create index postbacks_not_valid on postbacks (app_id, signature, postback_id)
    where signature <> 'valid';
-- Rows lie in the order of their arrival, so that next to nothing tells where the old ones are.
create index postbacks_received on postbacks using brin (received_at)
    with (autosummarize = on);

-- Each postback counts once. What counted is known for ever, also when the postback itself is gone: the counts stay,
-- so a postback that somebody kept must not count again.
create table postback_keys (
    app_id uuid not null,
    key_digest bytea not null,
    trust text collate "C" not null,
    body_digest bytea not null,
    postback_id uuid not null,
    constraint postback_keys_pkey primary key (app_id, key_digest, trust),
    constraint postback_keys_app_fkey foreign key (app_id) references apps (app_id)
);

-- Those whose App Store id no app has. They wait for one that does.
create table unclaimed_postbacks (
    app_store_id text collate "C" not null,
    postback_id uuid not null,
    received_at bigint not null,
    signature text collate "C" not null,
    key_digest bytea not null,
    body_digest bytea not null,
    postback text collate "C" not null,
    body text collate "C" not null,
    constraint unclaimed_postbacks_pkey primary key (app_store_id, postback_id),
    constraint unclaimed_postbacks_key_unique unique (app_store_id, key_digest, body_digest)
);
create index unclaimed_postbacks_received on unclaimed_postbacks (received_at);

-- What postbacks count, by the quarter of an hour of their arrival. Beside the figures of devices, never among them.
-- A key has no nothing: texts are empty, the campaign 0 and the fine value -1 where there is none.
create table postback_counts (
    app_id uuid not null,
    bucket bigint not null,
    counting text collate "C" not null,
    protocol text collate "C" not null,
    ad_network_id text collate "C" not null,
    source_identifier text collate "C" not null,
    campaign_id bigint not null,
    sequence_index bigint not null,
    fine_value bigint not null,
    coarse_value text collate "C" not null,
    installs bigint not null,
    redownloads bigint not null,
    reengagements bigint not null,
    later bigint not null,
    losses bigint not null,
    constraint postback_counts_pkey primary key (app_id, bucket, counting, protocol, ad_network_id,
        source_identifier, campaign_id, sequence_index, fine_value, coarse_value),
    constraint postback_counts_app_fkey foreign key (app_id) references apps (app_id)
) with (fillfactor = 70);
