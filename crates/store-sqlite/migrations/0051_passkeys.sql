-- Compatible from: 29
-- Passkeys: factors whose proofs are checked with a public key. Nodes that know second factors but no passkeys refuse the
-- sign-in of users with a passkey; older ones ask for the password only.
alter table factors add column credential_id blob;
alter table factors add column public_key blob;
alter table factors add column counter integer;
alter table factors add column is_syncable integer;
alter table factors add column is_synced integer;
alter table factors add column last_challenge_at integer;
create unique index factors_by_credential on factors (credential_id);
