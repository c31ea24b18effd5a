-- Compatible from: 28
-- Recent guesses of passwords, by a digest of the network, the email address or the known browser.
create table password_guesses (
    counter bytea not null,
    guesses bigint not null,
    last_at bigint not null,
    constraint password_guesses_pkey primary key (counter)
);
create index password_guesses_by_time on password_guesses (last_at);
