-- Tables of the notification service, in a schema of their own: it may share a database with the
-- decision engine. Text is compared by bytes (collate "C").

create schema notify;

-- One row a user: its lock orders what is stored for the user, so that commit order is sequence order.
create table notify.stream (
  tenant_id text collate "C" not null,
  user_id text collate "C" not null,
  head bigint not null default 0,
  unread bigint not null default 0,
  primary key (tenant_id, user_id)
);

create table notify.notification (
  tenant_id text collate "C" not null,
  user_id text collate "C" not null,
  sequence bigint not null,
  id uuid not null unique,
  title text not null,
  body text not null,
  data jsonb,
  -- Bits: 1 live, 2 webhook, 4 email.
  channels smallint not null,
  dedupe_key text collate "C",
  created_at timestamptz not null,
  read_at timestamptz,
  primary key (tenant_id, user_id, sequence)
);
create unique index notification_dedupe on notify.notification (tenant_id, user_id, dedupe_key)
  where dedupe_key is not null;
create index notification_unread on notify.notification (tenant_id, user_id, sequence)
  where read_at is null;
create index notification_created on notify.notification (created_at);

create table notify.endpoint (
  tenant_id text collate "C" not null,
  id text collate "C" not null,
  -- '' = every user of the tenant.
  user_id text collate "C" not null default '',
  channel smallint not null check (channel in (2, 4)),
  address text not null,
  signing_secret text not null default '',
  primary key (tenant_id, id)
);
create index endpoint_user on notify.endpoint (tenant_id, user_id);

create table notify.delivery (
  notification_id uuid not null references notify.notification (id) on delete cascade,
  tenant_id text collate "C" not null,
  endpoint_id text collate "C" not null,
  channel smallint not null,
  -- 1 pending, 2 sent, 3 dead.
  status smallint not null default 1,
  attempts integer not null default 0,
  last_error text not null default '',
  next_attempt_at timestamptz not null,
  primary key (notification_id, endpoint_id)
);
create index delivery_due on notify.delivery (next_attempt_at) where status = 1;
create index delivery_endpoint on notify.delivery (tenant_id, endpoint_id) where status = 1;

-- Stores a batch, a JSON array whose members are ordered by tenant and user, so that batches of
-- several processes lock streams in one order. One row a member, in order.
create function notify.put(batch jsonb)
  returns table (item integer, id uuid, sequence bigint, is_duplicate boolean, deliveries jsonb)
  language plpgsql as
$$
declare
  entry jsonb;
  entry_tenant text;
  entry_user text;
  entry_channels smallint;
  entry_head bigint;
begin
  item := 0;
  for entry in select value from jsonb_array_elements(batch) with ordinality order by ordinality loop
    entry_tenant := entry ->> 'tenant_id';
    entry_user := entry ->> 'user_id';
    entry_channels := (entry ->> 'channels')::smallint;
    deliveries := '[]';
    -- Locks the stream, made when it is new, before the dedupe key is looked at.
    insert into notify.stream as s (tenant_id, user_id, head, unread)
      values (entry_tenant, entry_user, 1, 1)
      on conflict (tenant_id, user_id) do update set head = s.head + 1, unread = s.unread + 1
      returning s.head into entry_head;
    id := null;
    if entry ->> 'dedupe_key' <> '' then
      select n.id, n.sequence into id, sequence from notify.notification n
        where n.tenant_id = entry_tenant and n.user_id = entry_user
          and n.dedupe_key = entry ->> 'dedupe_key';
    end if;
    is_duplicate := id is not null;
    if is_duplicate then
      update notify.stream s set head = s.head - 1, unread = s.unread - 1
        where s.tenant_id = entry_tenant and s.user_id = entry_user;
    else
      sequence := entry_head;
      id := (entry ->> 'id')::uuid;
      insert into notify.notification (
          tenant_id, user_id, sequence, id, title, body, data, channels, dedupe_key, created_at)
        values (entry_tenant, entry_user, put.sequence, put.id, entry ->> 'title', entry ->> 'body',
          nullif(entry -> 'data', 'null'), entry_channels, nullif(entry ->> 'dedupe_key', ''),
          (entry ->> 'created_at')::timestamptz);
      if entry_channels > 1 then
        with made as (
          insert into notify.delivery (notification_id, tenant_id, endpoint_id, channel, next_attempt_at)
            select put.id, e.tenant_id, e.id, e.channel, (entry ->> 'created_at')::timestamptz
            from notify.endpoint e
            where e.tenant_id = entry_tenant and e.user_id in ('', entry_user)
              and e.channel & entry_channels <> 0
            returning endpoint_id, channel
        )
        select coalesce(jsonb_agg(jsonb_build_array(m.endpoint_id, m.channel) order by m.endpoint_id), '[]')
          into deliveries from made m;
      end if;
      perform pg_notify('notify_stored',
        entry_tenant || ' ' || entry_user || ' ' || sequence::text);
    end if;
    return next;
    item := item + 1;
  end loop;
end
$$;
