-- Runs beside: 0001_notify
-- What fair claims, the following of deliveries and endpoints that are disabled need to know. The release before goes on
-- beside it: it claims by next_attempt_at, which a claim of this one moves as well.

alter table notify.delivery
  -- Waits for a place alone. False: for its time, or for the end of an attempt.
  add column is_ready boolean not null default true,
  -- Until then an attempt may be in progress; null: none is.
  add column claimed_until timestamptz,
  add column died_at timestamptz,
  -- The last attempts, oldest first: [time in ms, outcome, status of the answer, ms, error, start of the answer].
  add column attempt_log jsonb not null default '[]';

-- Rows come and go: what a claim looks at must not be full of those that went.
alter table notify.delivery set (
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_insert_scale_factor = 0.1,
  autovacuum_analyze_scale_factor = 0.05
);

alter table notify.endpoint
  -- Since then nothing has succeeded; null: the last attempt did, or there was none.
  add column failing_since timestamptz,
  add column disabled_at timestamptz,
  -- The secret before this one, which signs beside it until then.
  add column previous_secret text not null default '',
  add column previous_until timestamptz;

create index endpoint_disabled on notify.endpoint (tenant_id, id) where disabled_at is not null;

-- As before; a notification for a disabled endpoint gets a delivery that is given up at once, so that it can be seen and
-- tried again.
create or replace function notify.put(batch jsonb)
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
          insert into notify.delivery (notification_id, tenant_id, endpoint_id, channel, status,
              last_error, next_attempt_at, died_at)
            select put.id, e.tenant_id, e.id, e.channel, case when e.disabled_at is null then 1 else 3 end,
              case when e.disabled_at is null then '' else 'the endpoint is disabled' end,
              (entry ->> 'created_at')::timestamptz,
              case when e.disabled_at is null then null else clock_timestamp() end
            from notify.endpoint e
            where e.tenant_id = entry_tenant and e.user_id in ('', entry_user)
              and e.channel & entry_channels <> 0
            returning endpoint_id, channel, status, last_error
        )
        select coalesce(jsonb_agg(jsonb_build_array(m.endpoint_id, m.channel, m.status, m.last_error)
            order by m.endpoint_id), '[]')
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
