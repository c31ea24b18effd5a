-- Compatible from: 29
-- The secret that an app's alert secret replaced, and its end. Programs of the version before sign alerts with the current
-- secret only.
alter table alert_secrets add column previous blob;
alter table alert_secrets add column previous_until integer;
