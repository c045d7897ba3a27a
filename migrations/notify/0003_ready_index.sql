-- Runs beside: 0001_notify
-- Concurrently: notify.delivery_ready
-- By tenant and endpoint, so that a claim goes round those that have something ready, whatever lies behind the first of each.
create index concurrently delivery_ready on notify.delivery (channel, tenant_id, endpoint_id, next_attempt_at)
  where status = 1 and is_ready;
