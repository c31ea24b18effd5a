-- A device's claims of user ids. A link keeps the time of its first claim, which decides between the devices of a user. Existing links
-- count, with the time they have.
alter table user_links add column first_linked_at bigint not null default 0;
-- Whether billing uses the link, and whether the app's backend signed the user id.
alter table user_links add column is_used boolean not null default true;
alter table user_links add column is_signed boolean not null default false;
-- Keyed hash of the address of the first claim, for counting claims per address. Removed with the hashes of clicks.
alter table user_links add column address_hash bytea;
update user_links set first_linked_at = linked_at;
create index user_links_by_address on user_links (app_id, environment, address_hash, first_linked_at)
    where address_hash is not null;
create index user_links_with_address on user_links (first_linked_at) where address_hash is not null;
