-- Compatible from: 28
-- When the user of a session last proved who they are. Sessions without a proof count from their sign-in.
alter table sessions add column proved_at bigint;
