-- Runs beside: 0001_notify
-- Concurrently: notify.delivery_waiting
-- What becomes ready next.
create index concurrently delivery_waiting on notify.delivery (channel, next_attempt_at)
  where status = 1 and not is_ready;
