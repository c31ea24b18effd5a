-- An email address may have one account per organization. A unique address on the whole server would
-- tell every organization which addresses have an account elsewhere.

alter table users drop constraint users_email_unique;
alter table users add constraint users_email_unique unique (email, organization_id);
