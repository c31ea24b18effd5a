-- Compatible from: 28
-- Passkeys: factors whose proofs are checked with a public key. Nodes that know second factors but no passkeys refuse the
-- sign-in of users with a passkey; older ones ask for the password only.
alter table factors add column credential_id bytea;
alter table factors add column public_key bytea;
alter table factors add column counter bigint;
alter table factors add column is_syncable boolean;
alter table factors add column is_synced boolean;
alter table factors add column last_challenge_at bigint;
create unique index factors_by_credential on factors (credential_id);
