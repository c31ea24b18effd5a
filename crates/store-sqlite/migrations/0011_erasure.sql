-- Whoever erases a device looks for the people it went by; so far only people's devices were looked for.
create index user_links_by_device on user_links (app_id, environment, device_id);
