-- Compatible from: 28
-- The user's consent when an SDK event was tracked: one character each for `adUserData` and `adPersonalization` (y, n) and
-- for `tracking` (a, d, u); - if the user was not asked. Null if the sender reports no consent with its events. Programs
-- before this migration use the consent of the device only.
alter table events add column consent text collate "C";

-- Proof that a device's user holds the token to erase the device: a SHA-256 of the token and the device id. When the
-- device is erased, its row continues under the pseudonym, so that the same request can be repeated.
create table erase_tokens (
    app_id uuid not null,
    environment text collate "C" not null,
    device_id text collate "C" not null,
    proof bytea not null,
    constraint erase_tokens_pkey primary key (app_id, environment, device_id)
);
create index erase_tokens_proof on erase_tokens (app_id, environment, proof);
