-- How the sender of a website event spelled the device's id, if that differs from `device_id`: hashes for the networks are
-- made of it. Of earlier events only the lower-case form is known.
alter table events add column device_spelling text;
