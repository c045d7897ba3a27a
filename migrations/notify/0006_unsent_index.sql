-- Runs beside: 0001_notify
-- Concurrently: notify.delivery_unsent
-- The same of what is not sent, which is little beside what is.
create index concurrently delivery_unsent on notify.delivery (tenant_id, notification_id, endpoint_id)
  where status <> 2;
