-- Runs beside: 0002_typed_wildcards
--
-- As in 0001_authorization, but that what is to be deleted is read once: what locks rows or takes some of them finds others when a
-- plan reads it again for each row.

create or replace function gatehouse_renew(
  r_instance uuid, r_lease_ms float8,
  -- False: its row is gone; the rest is null.
  out is_member boolean,
  out is_shared boolean, out can_write boolean, out term bigint,
  -- Rows beside its own, and those that were removed.
  out others int, out fenced int,
  -- While it may not write: when a lease, or the wait after a new epoch, that keeps it from that ends.
  out wait_ms float8,
  out database_us bigint
)
language plpgsql volatile
as $$
declare
  v_open_at timestamptz;
begin
  update instance n set lease_until = clock_timestamp() + r_lease_ms * interval '1 millisecond'
    where n.id = r_instance
    returning n.shared_mode, n.may_write, n.alone_term into is_shared, can_write, term;
  is_member := found;
  if not is_member then return; end if;
  -- A row that is being renewed is left alone: two that wait for each other would be a deadlock.
  with ended as materialized (
    select l.id from instance l where l.id <> r_instance and l.lease_until < clock_timestamp()
    for update skip locked
  )
  delete from instance n using ended e where n.id = e.id;
  get diagnostics fenced = row_count;
  if fenced > 0 then perform pg_notify('gatehouse_instance', r_instance::text); end if;
  if not can_write then
    select d.opened_at + 1.1 * r_lease_ms * interval '1 millisecond' into v_open_at from deployment d;
    update instance n set may_write = true
      where n.id = r_instance and (v_open_at is null or v_open_at <= clock_timestamp())
        and not exists (select from instance o where o.id <> r_instance and not o.shared_mode);
    can_write := found;
  end if;
  select count(*)::int, (extract(epoch from greatest(
      min(n.lease_until) filter (where not n.shared_mode), v_open_at
    ) - clock_timestamp()) * 1000)::float8
    into others, wait_ms from instance n where n.id <> r_instance;
  if can_write then wait_ms := null; end if;
  database_us := (extract(epoch from clock_timestamp()) * 1000000)::bigint;
end
$$;

create or replace function gatehouse_delete_where(
  r_instance uuid, project text, tenants text[], the_user text, expired_by_us bigint, rows_max int,
  the_commit uuid, the_rpc text, the_acting_user text, the_request_id text
)
returns table (
  tenant text, epoch bigint, seq bigint, stamp bigint, deleted bigint, changes text,
  settings_version bigint
)
language plpgsql volatile
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_tenant text;
  v_shard record;
  v_settings bigint;
begin
  perform gatehouse_begin_write();
  perform 1 from shard s
    where s.project_id = project and s.tenant_id = any (tenants)
    order by s.tenant_id for update;
  if not gatehouse_may_write(r_instance) then perform gatehouse_refuse(r_instance); end if;
  v_settings := coalesce((select p.version from project p where p.id = project), 0);
  foreach v_tenant in array tenants loop
    -- Sent again after a lost connection: what it did then.
    return query select c.tenant_id, s.epoch, c.seq, c.stamp,
        json_array_length(c.changes::json)::bigint, c.changes, c.settings_version
      from tuple_change c
      join shard s on s.project_id = c.project_id and s.tenant_id = c.tenant_id
      where c.project_id = project and c.tenant_id = v_tenant and c.commit_id = the_commit;
    continue when found;
    with doomed as materialized (
      (select t.ctid as id from relation_tuple t
       where the_user is not null and t.project_id = project and t.tenant_id = v_tenant
         and t.subject_namespace = '' and t.subject_id = the_user and t.subject_relation = ''
       limit rows_max)
      union all
      (select t.ctid from relation_tuple t
       where expired_by_us is not null and t.project_id = project and t.tenant_id = v_tenant
         and t.expires_at_us <= expired_by_us
       limit rows_max)
    ), gone as (
      delete from relation_tuple t using doomed d where t.ctid = d.id
      returning t.namespace, t.object_id, t.relation,
        t.subject_namespace, t.subject_id, t.subject_relation
    )
    select count(*) as deleted, '[' || string_agg(json_build_array(
        2, g.namespace, g.object_id, g.relation,
        g.subject_namespace, g.subject_id, g.subject_relation, null, null, null
      )::text, ',' order by g.namespace, g.object_id, g.relation,
        g.subject_namespace, g.subject_id, g.subject_relation) || ']' as changes
      into v_shard from gone g;
    continue when v_shard.deleted = 0;
    return query with moved as (
        update shard s set seq = s.seq + 1, stamp = hashtextextended(gen_random_uuid()::text, 0),
          settings_version = greatest(s.settings_version, v_settings)
        where s.project_id = project and s.tenant_id = v_tenant
        returning s.epoch, s.seq, s.stamp
      ), recorded as (
        insert into tuple_change (
          project_id, tenant_id, seq, stamp, commit_id, rpc, acting_user, request_id, changes,
          settings_version
        )
        select project, v_tenant, m.seq, m.stamp, the_commit, the_rpc, the_acting_user,
          the_request_id, v_shard.changes, v_settings
        from moved m
      )
      select v_tenant, m.epoch, m.seq, m.stamp, v_shard.deleted, v_shard.changes, v_settings
      from moved m;
  end loop;
end
$$;
