-- Several organizations may claim one App Store id. app_store_ids contains the app that receives the
-- postbacks of an id, if any; this table contains all claims with their evidence. With Citus a reference
-- table, as app_store_ids is.

create table app_store_claims (
    app_store_id text collate "C" not null,
    app_id uuid not null,
    organization_id uuid not null,
    claimed_at bigint not null,
    proof text collate "C",
    has_postback boolean not null default false,
    constraint app_store_claims_pkey primary key (app_store_id, app_id)
);
create index app_store_claims_by_app on app_store_claims (app_id);

insert into app_store_claims (app_store_id, app_id, organization_id, claimed_at, proof)
select app_store_id, apps.app_id, organization_id, created_at, 'existing'
from app_store_ids join apps on apps.app_id = app_store_ids.app_id;
