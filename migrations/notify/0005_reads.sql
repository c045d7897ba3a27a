-- Runs beside: 0001_notifications
--
-- What users mark as read, in order, so that every open stream of theirs hears of it.

-- How many calls have marked something. A release from before counts none, and its marks are heard of nowhere.
alter table notify.stream add column reads bigint not null default 0;

-- One call that marked something: either these notifications, or all up to a sequence. Kept for two hours.
create table notify.read_mark (
  tenant_id text collate "C" not null,
  user_id text collate "C" not null,
  -- `notify.stream.reads` of then: from 1, without gaps.
  revision bigint not null,
  ids uuid[],
  up_to bigint,
  made_at timestamptz not null default clock_timestamp(),
  primary key (tenant_id, user_id, revision),
  check ((ids is null) <> (up_to is null))
);
create index read_mark_made on notify.read_mark (made_at);

-- 0004_unread_channels made one that serves all that this did.
drop index notify.notification_unread;
