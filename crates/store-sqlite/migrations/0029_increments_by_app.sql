-- The increments of one app are counted, merged and read without those of the others.
create index rollup_increments_by_app on rollup_increments (app_id);
