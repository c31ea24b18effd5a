-- Compatible from: 28
-- The secret that an app's alert secret replaced, and its end. Programs of the version before sign alerts with the current
-- secret only.
alter table alert_secrets add column previous bytea;
alter table alert_secrets add column previous_until bigint;
