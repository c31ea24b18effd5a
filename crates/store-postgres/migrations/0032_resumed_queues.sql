-- Compatible from: 28
-- When a queue was last resumed. Results of rounds that began before do not pause it again.
alter table queues add column resumed_at bigint;
