-- Postbacks of SKAdNetwork and AdAttributionKit, what they count, and those of no app that is known yet.

-- What is searched is a column; everything a postback says is in `postback`, and the bytes that came in `body`.
create table postbacks (
    app_id blob not null references apps (app_id),
    -- Begins with the time of arrival.
    postback_id blob not null,
    received_at integer not null,
    protocol text not null,
    signature text not null,
    -- trusted, test or untrusted.
    trust text not null,
    -- When it counts: always, with_tests or without_tests (the app's switch), never.
    counting text not null,
    -- 1: another body came under its key before, trusted no less. Such a one never counts.
    conflicting integer not null,
    key_digest blob not null,
    body_digest blob not null,
    ad_network_id text not null,
    source_identifier text,
    sequence_index integer not null,
    did_win integer not null,
    conversion_type text not null,
    postback text not null,
    body text not null,
    primary key (app_id, postback_id)
) strict, without rowid;
create unique index postbacks_by_key on postbacks (app_id, key_digest, body_digest);
create index postbacks_by_network on postbacks (app_id, ad_network_id, postback_id);
-- People look for what does not verify; what does is nearly all of it.
create index postbacks_not_valid on postbacks (app_id, signature, postback_id) where signature <> 'valid';
create index postbacks_received on postbacks (received_at);

-- Each postback counts once. What counted is known for ever, also when the postback itself is gone: the counts stay,
-- so a postback that somebody kept must not count again.
create table postback_keys (
    app_id blob not null references apps (app_id),
    key_digest blob not null,
    trust text not null,
    body_digest blob not null,
    postback_id blob not null,
    primary key (app_id, key_digest, trust)
) strict, without rowid;

-- Those whose App Store id no app has. They wait for one that does.
create table unclaimed_postbacks (
    app_store_id text not null,
    postback_id blob not null,
    received_at integer not null,
    signature text not null,
    key_digest blob not null,
    body_digest blob not null,
    postback text not null,
    body text not null,
    primary key (app_store_id, postback_id)
) strict, without rowid;
create unique index unclaimed_postbacks_by_key on unclaimed_postbacks (app_store_id, key_digest, body_digest);
create index unclaimed_postbacks_received on unclaimed_postbacks (received_at);

-- What postbacks count, by the quarter of an hour of their arrival. Beside the figures of devices, never among them.
-- A key has no nothing: texts are empty, the campaign 0 and the fine value -1 where there is none.
create table postback_counts (
    app_id blob not null references apps (app_id),
    bucket integer not null,
    counting text not null,
    protocol text not null,
    ad_network_id text not null,
    source_identifier text not null,
    campaign_id integer not null,
    sequence_index integer not null,
    fine_value integer not null,
    coarse_value text not null,
    installs integer not null,
    redownloads integer not null,
    reengagements integer not null,
    later integer not null,
    losses integer not null,
    primary key (app_id, bucket, counting, protocol, ad_network_id, source_identifier, campaign_id,
                 sequence_index, fine_value, coarse_value)
) strict, without rowid;
