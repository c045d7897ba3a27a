-- Runs beside: 0001_notifications
-- Concurrently: notify.notification_unread_channels
--
-- What a user has not read, with its channels: it is counted and listed by those, without a look at the table.

create index concurrently notification_unread_channels on notify.notification (tenant_id, user_id, sequence) include (channels)
  where read_at is null;
