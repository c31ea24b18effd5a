-- The environment of a click that an SDK key made from `openedUrl`; null for a tap on a link, which has none. With a test
-- key such a click was counted in the live figures and could claim a live install.
alter table clicks add column environment text;
