-- Compatible from: 29
-- Recent guesses of passwords, by a digest of the network, the email address or the known browser.
create table password_guesses (
    counter blob not null,
    guesses integer not null,
    last_at integer not null,
    primary key (counter)
) strict, without rowid;
create index password_guesses_by_time on password_guesses (last_at);

insert into sqlite_stat1 (tbl, idx, stat) values
    ('password_guesses', 'password_guesses', '1000 1'),
    ('password_guesses', 'password_guesses_by_time', '1000 1 1');
analyze sqlite_schema;
