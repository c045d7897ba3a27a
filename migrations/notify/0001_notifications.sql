-- The schema of the notification service: tables by subject, then the functions that change them.
-- Replaces: 0001_notify
-- Replaces: 0002_followable_deliveries
-- Replaces: 0003_ready_index
-- Replaces: 0004_waiting_index
-- Replaces: 0005_tenant_index
-- Replaces: 0006_unsent_index
-- Replaces: 0007_dead_index
-- Replaces: 0008_claim
-- Replaces: 0009_stream_orders
--
-- In a schema of its own: it may share a database with the decision engine. Text is compared by bytes
-- (collate "C").
--
--   1 Streams and notifications   what a user is told, in order
--   2 Endpoints and deliveries    where it goes besides, and how that went
--   3 Orders about streams        what every instance must do about them
--   4 Functions                   storing, claiming, ordering
--
-- Columns stand in the order in which databases from before 0.1.0 have them, so that the two are equal.

-- ===========================================================================
-- 1 Streams and notifications
-- ===========================================================================

create schema notify;

-- One row a user: its lock orders what is stored for the user, so that commit order is sequence order.
create table notify.stream (
  tenant_id text collate "C" not null,
  user_id text collate "C" not null,
  head bigint not null default 0,
  unread bigint not null default 0,
  primary key (tenant_id, user_id)
);

-- What was told, by the user's own sequence.
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

-- ===========================================================================
-- 2 Endpoints and deliveries
-- ===========================================================================

-- Where webhooks and mails go.
create table notify.endpoint (
  tenant_id text collate "C" not null,
  id text collate "C" not null,
  -- '' = every user of the tenant.
  user_id text collate "C" not null default '',
  channel smallint not null check (channel in (2, 4)),
  address text not null,
  signing_secret text not null default '',
  -- Since then nothing has succeeded; null: the last attempt did, or there was none.
  failing_since timestamptz,
  disabled_at timestamptz,
  -- The secret before this one, which signs beside it until then.
  previous_secret text not null default '',
  previous_until timestamptz,
  primary key (tenant_id, id)
);
create index endpoint_user on notify.endpoint (tenant_id, user_id);
create index endpoint_disabled on notify.endpoint (tenant_id, id) where disabled_at is not null;

-- One notification on its way to one endpoint.
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
  -- Waits for a place alone. False: for its time, or for the end of an attempt.
  is_ready boolean not null default true,
  -- Until then an attempt may be in progress; null: none is.
  claimed_until timestamptz,
  died_at timestamptz,
  -- The last attempts, oldest first: [time in ms, outcome, status of the answer, ms, error, start of the answer].
  attempt_log jsonb not null default '[]',
  primary key (notification_id, endpoint_id)
) with (
  -- Rows come and go: what a claim looks at must not be full of those that went.
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_insert_scale_factor = 0.1,
  autovacuum_analyze_scale_factor = 0.05
);
create index delivery_due on notify.delivery (next_attempt_at) where status = 1;
create index delivery_endpoint on notify.delivery (tenant_id, endpoint_id) where status = 1;
-- By tenant and endpoint, so that a claim goes round those that have something ready, whatever lies behind the first of each.
create index delivery_ready on notify.delivery (channel, tenant_id, endpoint_id, next_attempt_at)
  where status = 1 and is_ready;
-- What becomes ready next.
create index delivery_waiting on notify.delivery (channel, next_attempt_at)
  where status = 1 and not is_ready;
-- The deliveries of a tenant by time, since ids of notifications begin with theirs.
create index delivery_tenant on notify.delivery (tenant_id, notification_id, endpoint_id);
-- The same of what is not sent, which is little beside what is.
create index delivery_unsent on notify.delivery (tenant_id, notification_id, endpoint_id)
  where status <> 2;
-- Dead letters by how long they are kept.
create index delivery_dead on notify.delivery (died_at) where status = 3;

-- ===========================================================================
-- 3 Orders about streams
-- ===========================================================================
-- What every instance must do about streams: end those of revoked tokens, end those of a user, follow a
-- tenant's policy.

-- One row; its lock makes revisions visible in their order.
create table notify.stream_order_head (
  is_head boolean primary key default true check (is_head),
  revision bigint not null
);
insert into notify.stream_order_head (revision) values (0);

-- Kept for twice as long as any token is valid.
create table notify.stream_order (
  revision bigint primary key,
  -- 1 tokens of the user that were issued until at_ms are void, 2 so is one token, 3 streams of the user end, 4 the
  -- policy of the tenant has changed.
  kind smallint not null,
  tenant_id text collate "C" not null,
  user_id text collate "C" not null default '',
  token_id text collate "C" not null default '',
  at_ms bigint not null,
  made_at timestamptz not null default clock_timestamp()
);
create index stream_order_user on notify.stream_order (tenant_id, user_id, at_ms) where kind = 1;
create index stream_order_token on notify.stream_order (tenant_id, token_id) where kind = 2;
create index stream_order_made on notify.stream_order (made_at);

create table notify.stream_policy (
  tenant_id text collate "C" primary key,
  ends_with_token boolean not null
);

-- ===========================================================================
-- 4 Functions
-- ===========================================================================

-- Stores a batch, a JSON array whose members are ordered by tenant and user, so that batches of
-- several processes lock streams in one order. One row a member, in order. A notification for a disabled
-- endpoint gets a delivery that is given up at once, so that it can be seen and tried again.
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

-- Takes up to `places` deliveries of one channel and hides them until `lease_end`. First it makes ready what has become due, at most 500.
-- Then it goes round the tenants that have something ready, from the one after `after_tenant` on, and round the endpoints of each; a visit
-- takes at most `visit_max`, and the round goes on until there are no places or nothing that may be taken.
--   A tenant has at most `tenant_max` in progress, and at most as many as places are left: however many tenants hold all they can get, there
--   are places left for the next one (dynamic thresholds: A. K. Choudhury, E. L. Hahne, IEEE/ACM Transactions on Networking 6(2), 1998).
--   An endpoint has at most `endpoint_max`.
-- `busy` is what is in progress already, by tenant: {"acme": {"n": 3, "after": "hook", "e": {"hook": 3}}}; `after` is the endpoint
-- that was served last. One row for each delivery, and a last one without notification_id: the tenant that was visited last, and in
-- `attempts` 1 if the call ended since it had looked at as much as one call may, so that another one would find more.
--
-- Cost: a few probes of an index for each place and for each tenant and endpoint that may take nothing now, which are no more than have
-- something in progress. What waits behind the first of an endpoint is not looked at. Other ways to read are switched off, since a
-- table that has just grown is not as small as the planner may still take it to be.
create function notify.claim(claim_channel smallint, now_at timestamptz, lease_end timestamptz, places integer, tenant_max integer,
    endpoint_max integer, visit_max integer, busy jsonb, after_tenant text)
  returns table (notification_id uuid, tenant_id text, endpoint_id text, attempts integer)
  language plpgsql rows 32
  set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off
  set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan as
$$
#variable_conflict use_column
declare
  places_left integer := places;
  visits_left integer := 4 * places + 256;
  ring_start text collate "C" := after_tenant;
  ring_at text collate "C" := after_tenant;
  is_past_end boolean := false;
  taken_in_round integer := 0;
  the_tenant text collate "C";
  the_endpoint text collate "C";
  the_due timestamptz;
  is_endpoint_off boolean;
  lane_start text collate "C";
  lane_at text collate "C";
  is_past_last boolean;
  tenant_busy jsonb;
  tenant_count integer;
  endpoint_count integer;
  allowed integer;
begin
  update notify.delivery d set is_ready = true, claimed_until = null
    from (
      select w.notification_id, w.endpoint_id from notify.delivery w
      where w.status = 1 and not w.is_ready and w.channel = claim_channel and w.next_attempt_at <= now_at
      order by w.next_attempt_at limit 500 for update skip locked
    ) due
    where d.notification_id = due.notification_id and d.endpoint_id = due.endpoint_id;

  while places_left > 0 and visits_left > 0 loop
    visits_left := visits_left - 1;
    select d.tenant_id into the_tenant from notify.delivery d
      where d.status = 1 and d.is_ready and d.channel = claim_channel and d.tenant_id > ring_at
      order by d.tenant_id limit 1;
    if the_tenant is null or (is_past_end and the_tenant > ring_start) then
      if not is_past_end and ring_start <> '' then
        is_past_end := true;
        ring_at := '';
        continue;
      end if;
      exit when taken_in_round = 0;
      taken_in_round := 0;
      is_past_end := false;
      ring_at := ring_start;
      continue;
    end if;
    ring_at := the_tenant;
    tenant_busy := coalesce(busy -> the_tenant, '{}');
    tenant_count := coalesce((tenant_busy ->> 'n')::integer, 0);
    allowed := visit_max;
    continue when tenant_count >= least(tenant_max, places_left);

    lane_start := coalesce(tenant_busy ->> 'after', '');
    lane_at := lane_start;
    is_past_last := false;
    while allowed > 0 and tenant_count < least(tenant_max, places_left) and visits_left > 0 loop
      visits_left := visits_left - 1;
      select d.endpoint_id, d.next_attempt_at into the_endpoint, the_due from notify.delivery d
        where d.status = 1 and d.is_ready and d.channel = claim_channel and d.tenant_id = the_tenant
          and d.endpoint_id > lane_at
        order by d.endpoint_id, d.next_attempt_at limit 1;
      if the_endpoint is null or (is_past_last and the_endpoint > lane_start) then
        exit when is_past_last or lane_start = '';
        is_past_last := true;
        lane_at := '';
        continue;
      end if;
      lane_at := the_endpoint;
      endpoint_count := coalesce((tenant_busy -> 'e' ->> the_endpoint)::integer, 0);
      continue when the_due > now_at or endpoint_count >= endpoint_max;
      select e.disabled_at is not null into is_endpoint_off from notify.endpoint e
        where e.tenant_id = the_tenant and e.id = the_endpoint;
      continue when is_endpoint_off;
      update notify.delivery d set is_ready = false, next_attempt_at = lease_end, claimed_until = lease_end
        from (
          select r.notification_id from notify.delivery r
          where r.status = 1 and r.is_ready and r.channel = claim_channel and r.tenant_id = the_tenant
            and r.endpoint_id = the_endpoint and r.next_attempt_at <= now_at
          order by r.next_attempt_at limit 1 for update skip locked
        ) due
        where d.notification_id = due.notification_id and d.endpoint_id = the_endpoint
        returning d.notification_id, d.attempts into notification_id, attempts;
      -- Another process has what there was.
      continue when notification_id is null;
      tenant_id := the_tenant;
      endpoint_id := the_endpoint;
      return next;
      places_left := places_left - 1;
      allowed := allowed - 1;
      taken_in_round := taken_in_round + 1;
      tenant_count := tenant_count + 1;
      tenant_busy := jsonb_build_object('n', tenant_count, 'after', the_endpoint,
        'e', coalesce(tenant_busy -> 'e', '{}') || jsonb_build_object(the_endpoint, endpoint_count + 1));
    end loop;
    busy := busy || jsonb_build_object(the_tenant, tenant_busy);
  end loop;

  notification_id := null;
  tenant_id := ring_at;
  endpoint_id := null;
  attempts := case when visits_left > 0 then 0 else 1 end;
  return next;
end
$$;

-- The time of issue of a token for the user, after every revocation that is visible, whatever the clocks say.
create function notify.issue_ms(for_tenant text, for_user text) returns bigint
  language sql volatile as
$$
  select greatest((extract(epoch from clock_timestamp()) * 1000)::bigint, (
    select max(o.at_ms) + 1 from notify.stream_order o
    where o.kind = 1 and o.tenant_id = for_tenant and o.user_id = for_user))
$$;

-- Gives one order, and wakes all who listen: a payload that begins with a space is none of a notification.
create function notify.order_streams(order_kind smallint, for_tenant text, for_user text, for_token text) returns bigint
  language plpgsql as
$$
declare
  new_revision bigint;
begin
  update notify.stream_order_head set revision = revision + 1 returning revision into new_revision;
  insert into notify.stream_order (revision, kind, tenant_id, user_id, token_id, at_ms)
    values (new_revision, order_kind, for_tenant, for_user, for_token, notify.issue_ms(for_tenant, for_user));
  perform pg_notify('notify_stored', ' orders ' || new_revision::text);
  return new_revision;
end
$$;
