-- Compatible from: 29
-- Statistics of indexes that were added after migration 9. Without them, SQLite reads all user links of an app to find those
-- of one device, on every call of the SDK that names a user.
insert into sqlite_stat1 (tbl, idx, stat) values
    ('devices', 'devices_by_activity', '2000000 1'),
    ('devices', 'devices_by_hold', '100000 50000 25000 12000 1'),
    ('erase_tokens', 'erase_tokens', '2000000 1000000 500000 1'),
    ('erase_tokens', 'erase_tokens_proof', '2000000 1000000 500000 1'),
    ('identities', 'identities_by_activity', '2000000 1'),
    ('rollup_credits', 'rollup_credits', '10000000 5000000 2500000 800000 2000 500 100 20 5 2 1'),
    ('rollup_credits', 'rollup_credits_details', '1000000 500000 1000 500 2'),
    ('rollup_names', 'rollup_names', '5000000 2500000 1250000 400000 1000 300 2 1'),
    ('rollup_names', 'rollup_names_details', '500000 250000 1000 500 2'),
    ('unclaimed_postbacks', 'unclaimed_postbacks', '10000 1000 1'),
    ('unclaimed_postbacks', 'unclaimed_postbacks_by_key', '10000 1000 1 1'),
    ('unclaimed_postbacks', 'unclaimed_postbacks_received', '10000 1'),
    ('user_links', 'user_links', '2000000 1000000 500000 2 1'),
    ('user_links', 'user_links_by_address', '1000000 500000 250000 2 1'),
    ('user_links', 'user_links_by_device', '2000000 1000000 500000 2'),
    ('user_links', 'user_links_with_address', '1000000 1');
analyze sqlite_schema;
