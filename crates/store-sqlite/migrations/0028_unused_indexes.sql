-- No statement uses these two indexes, but every install and every new value of a day was written to
-- them.
drop index cohort_devices_by_install;
drop index rollup_values_told_apart;
