-- Whatever is recorded belongs to an app that its writer has just read, and apps are archived, never deleted. Looking
-- the app up once more for each row costs a fifth of what accepting an event costs, and locks the app's row besides.
alter table deliveries drop constraint deliveries_app_fkey;
alter table devices drop constraint devices_app_fkey;
alter table event_keys drop constraint event_keys_app_fkey;
alter table events drop constraint events_app_fkey;
alter table identities drop constraint identities_app_fkey;
alter table outbox drop constraint outbox_app_fkey;
alter table postback_keys drop constraint postback_keys_app_fkey;
alter table postbacks drop constraint postbacks_app_fkey;
alter table receipts drop constraint receipts_app_fkey;
alter table web_events drop constraint web_events_app_fkey;
