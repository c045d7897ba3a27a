-- Runs beside: 0001_notifications
--
-- As in 0003_claim_once, but that each look is at one index alone, whatever statistics say. Before, a look for what is ready could go
-- through all that waits for a later attempt, and one for what waits through all that is ready, by an index that has both.
--   By tenant and endpoint: places are compared as rows, and read in an order with the channel, which only delivery_ready has. It
--   begins at the place, and looks at one entry; an upper bound of rows would not end it.
--   By time: no other index has what waits, or what is ready, by its time any more.

drop index notify.delivery_due;

create or replace function notify.claim(claim_channel smallint, now_at timestamptz, lease_end timestamptz, places integer, tenant_max integer,
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
  found_tenant text collate "C";
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
  with due as materialized (
    select w.notification_id, w.endpoint_id from notify.delivery w
    where w.status = 1 and not w.is_ready and w.channel = claim_channel and w.next_attempt_at <= now_at
    order by w.next_attempt_at limit 500 for update skip locked
  )
  update notify.delivery d set is_ready = true, claimed_until = null from due
    where d.notification_id = due.notification_id and d.endpoint_id = due.endpoint_id;

  while places_left > 0 and visits_left > 0 loop
    visits_left := visits_left - 1;
    select d.tenant_id into the_tenant from notify.delivery d
      where d.status = 1 and d.is_ready and d.channel <= claim_channel
        and (d.channel, d.tenant_id) > (claim_channel, ring_at)
      order by d.channel, d.tenant_id limit 1;
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
      select d.tenant_id, d.endpoint_id, d.next_attempt_at into found_tenant, the_endpoint, the_due from notify.delivery d
        where d.status = 1 and d.is_ready and d.channel <= claim_channel
          and (d.channel, d.tenant_id, d.endpoint_id) > (claim_channel, the_tenant, lane_at)
        order by d.channel, d.tenant_id, d.endpoint_id, d.next_attempt_at limit 1;
      if found_tenant is distinct from the_tenant or (is_past_last and the_endpoint > lane_start) then
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
      with due as materialized (
        select r.notification_id from notify.delivery r
        where r.status = 1 and r.is_ready and r.channel = claim_channel and r.tenant_id = the_tenant
          and r.endpoint_id = the_endpoint and r.next_attempt_at <= now_at
        order by r.next_attempt_at limit 1 for update skip locked
      )
      update notify.delivery d set is_ready = false, next_attempt_at = lease_end, claimed_until = lease_end from due
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

-- When what waits for its time is due next, of a channel; null: nothing waits. One probe of the index.
create function notify.next_due(for_channel smallint) returns timestamptz
  language plpgsql stable
  set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set plan_cache_mode = force_generic_plan as
$$
begin
  return (select d.next_attempt_at from notify.delivery d
    where d.status = 1 and not d.is_ready and d.channel = for_channel order by d.next_attempt_at limit 1);
end
$$;
