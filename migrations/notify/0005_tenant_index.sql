-- Runs beside: 0001_notify
-- Concurrently: notify.delivery_tenant
-- The deliveries of a tenant by time, since ids of notifications begin with theirs.
create index concurrently delivery_tenant on notify.delivery (tenant_id, notification_id, endpoint_id);
