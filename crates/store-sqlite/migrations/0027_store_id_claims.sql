-- Several organizations may claim one App Store id. app_store_ids contains the app that receives the
-- postbacks of an id, if any; this table contains all claims with their evidence.

create table app_store_claims (
    app_store_id text not null,
    app_id blob not null references apps (app_id),
    organization_id blob not null references organizations (organization_id),
    claimed_at integer not null,
    proof text,
    has_postback integer not null default 0,
    primary key (app_store_id, app_id)
) strict, without rowid;
create index app_store_claims_by_app on app_store_claims (app_id);

insert into app_store_claims (app_store_id, app_id, organization_id, claimed_at, proof)
select app_store_id, apps.app_id, organization_id, created_at, 'existing'
from app_store_ids join apps on apps.app_id = app_store_ids.app_id;
