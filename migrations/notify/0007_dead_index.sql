-- Runs beside: 0001_notify
-- Concurrently: notify.delivery_dead
-- Dead letters by how long they are kept.
create index concurrently delivery_dead on notify.delivery (died_at) where status = 3;
