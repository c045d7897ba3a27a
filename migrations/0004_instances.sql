-- Several instances on one database. Functions with new signatures stand beside those of the release
-- before, whose statements go on working.

alter table instance
  -- 2: checks its own row before each commit. 1: of the release that ran alone.
  add column protocol smallint not null default 1,
  -- Host and process, for people.
  add column holder text not null default '',
  -- Whether every other instance had left alone mode after this row was there.
  add column may_write boolean not null default false,
  -- Counts how often this row became alone, so that an acknowledgement sent before does not count.
  add column alone_term bigint not null default 0;

-- When the present epoch began, if it is not the first.
alter table deployment add column opened_at timestamptz;

-- The version of the project's settings, as read under the shard's lock.
alter table shard add column settings_version bigint not null default 0;
alter table tuple_change add column settings_version bigint not null default 0;

-- In a new history a row of an instance says nothing: what was written last may be lost, and rows as
-- well. All register anew, and commit only when every lease of the old history has ended.
create function gatehouse_epoch_opened() returns trigger language plpgsql as $$
begin
  delete from public.instance;
  new.opened_at := clock_timestamp();
  return new;
end
$$;

create trigger epoch_opened before update of epoch on deployment
  for each row when (new.epoch <> old.epoch) execute function gatehouse_epoch_opened();

-- Every transaction that writes holds this lock shared until its end, from before it looks whether
-- its instance is still registered ('gate', 'fenc'). Taken before the rows of shards. Who becomes
-- alone takes it exclusively, after the last other row is gone: what was let in has then ended.
create function gatehouse_begin_write() returns void language plpgsql volatile as $$
begin
  -- The snapshot of any other level is older than the locks.
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'writes need read committed';
  end if;
  perform pg_advisory_xact_lock_shared(1734440037, 1717923427);
end
$$;

-- Whether this instance may commit. null: a caller that is none, which may while none is registered.
create function gatehouse_may_write(r_instance uuid) returns boolean language sql volatile as $$
  select case when r_instance is null then not exists (select from instance n where n.protocol >= 2)
    else exists (select from instance n where n.id = r_instance and n.may_write) end
$$;

create function gatehouse_refuse(r_instance uuid) returns void language plpgsql as $$
begin
  raise exception 'instance % is not registered, or may not write yet', coalesce(r_instance::text, '(none)')
    using errcode = 'GH002', hint = 'call gatehouse_join(null) gives an id to write under';
end
$$;

-- For statements that write no tuples, but what reads go by: lets r_instance in until the transaction ends.
create function gatehouse_enter(r_instance uuid) returns boolean language plpgsql volatile as $$
begin
  perform gatehouse_begin_write();
  if not gatehouse_may_write(r_instance) then perform gatehouse_refuse(r_instance); end if;
  return true;
end
$$;

-- Extends the lease of r_instance, which is registered, removes rows whose lease has ended, and lets
-- r_instance write where every other row is in shared mode.
create function gatehouse_renew(
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
  delete from instance n where n.id in (
    select l.id from instance l where l.id <> r_instance and l.lease_until < clock_timestamp()
    for update skip locked
  );
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

-- Makes a row for r_instance, an id that was never used before, in shared mode, and renews it at once. The
-- lock keeps an instance that is becoming alone from not seeing the row.
create function gatehouse_register(
  r_instance uuid, r_region text, r_holder text, r_lease_ms float8,
  -- Of the same process, which has given them up.
  r_former uuid[],
  -- Whether nobody else can reach this database: then no other lease counts.
  r_is_exclusive boolean,
  out is_member boolean, out is_shared boolean, out can_write boolean, out term bigint,
  out others int, out fenced int, out wait_ms float8, out database_us bigint
)
language plpgsql volatile
as $$
begin
  perform gatehouse_begin_write();
  insert into instance (id, region, holder, lease_until, shared_mode, protocol)
    values (r_instance, r_region, r_holder, clock_timestamp(), true, 2);
  delete from instance n
    where n.id <> r_instance and (r_is_exclusive or n.id = any (r_former));
  if r_is_exclusive then update deployment set opened_at = null where opened_at is not null; end if;
  perform pg_notify('gatehouse_instance', r_instance::text);
  select r.is_member, r.is_shared, r.can_write, r.term, r.others, r.fenced, r.wait_ms, r.database_us
    into is_member, is_shared, can_write, term, others, fenced, wait_ms, database_us
    from gatehouse_renew(r_instance, r_lease_ms) r;
end
$$;

-- Says that r_instance has left alone mode, into which it came with r_term.
create function gatehouse_acknowledge(r_instance uuid, r_term bigint) returns boolean
language plpgsql volatile
as $$
begin
  update instance n set shared_mode = true where n.id = r_instance and n.alone_term = r_term;
  if not found then return false; end if;
  perform pg_notify('gatehouse_instance', r_instance::text);
  return true;
end
$$;

-- Makes r_instance alone where no other row is there and every write that was let in has ended: returns
-- the term, else null. Writes wait for it meanwhile, so it waits for them for a short time only
-- (SQLSTATE 55P03).
create function gatehouse_become_alone(r_instance uuid, r_lease_ms float8) returns bigint
language plpgsql volatile
set lock_timeout = '100ms'
as $$
declare
  v_term bigint;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'becoming alone needs read committed';
  end if;
  perform pg_advisory_xact_lock(1734440037, 1717923427);
  update instance n set shared_mode = false, alone_term = n.alone_term + 1,
      lease_until = clock_timestamp() + r_lease_ms * interval '1 millisecond'
    where n.id = r_instance and n.may_write
      and not exists (select from instance o where o.id <> r_instance)
    returning n.alone_term into v_term;
  return v_term;
end
$$;

-- Ends a registration: nothing that was sent under it and has not been let in yet commits any more.
create function gatehouse_leave(r_instance uuid) returns void language sql volatile as $$
  with gone as (delete from instance n where n.id = r_instance returning n.id)
  select pg_notify('gatehouse_instance', g.id::text) from gone g
$$;

-- For SQL by hand while instances run: registers, waits until writes are allowed, and returns the id to
-- give to the functions that write. End it with gatehouse_leave; else it ends with its lease.
create procedure gatehouse_join(inout r_instance uuid, r_lease interval default '1 minute')
language plpgsql
as $$
declare
  v_lease_ms float8 := extract(epoch from r_lease) * 1000;
begin
  r_instance := gen_random_uuid();
  perform gatehouse_register(
    r_instance, '', 'operator ' || current_user, v_lease_ms, '{}'::uuid[], false
  );
  commit;
  for attempt in 1..600 loop
    if gatehouse_may_write(r_instance) then return; end if;
    perform pg_sleep(0.05);
    perform gatehouse_renew(r_instance, v_lease_ms);
    commit;
  end loop;
  perform gatehouse_leave(r_instance);
  commit;
  raise exception 'another instance does not leave alone mode';
end
$$;

-- Locks shard rows in the order given, which is sorted, and makes the missing ones.
create function gatehouse_lock_rows(
  s_project text[], s_tenant text[], out epochs bigint[], out seqs bigint[]
)
language plpgsql volatile
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
begin
  for attempt in 1..3 loop
    with locked as (
      select k.n, s.epoch, s.seq
      from unnest(s_project, s_tenant) with ordinality k (project_id, tenant_id, n)
      join shard s on s.project_id = k.project_id and s.tenant_id = k.tenant_id
      order by k.n
      for update of s
    )
    select array_agg(l.epoch order by l.n), array_agg(l.seq order by l.n)
      into epochs, seqs from locked l;
    if cardinality(epochs) = cardinality(s_project) then return; end if;
    insert into shard (project_id, tenant_id)
      select k.project_id, k.tenant_id
      from unnest(s_project, s_tenant) with ordinality k (project_id, tenant_id, n)
      order by k.n
      on conflict do nothing;
  end loop;
  raise exception 'shard rows vanish while they are locked';
end
$$;

-- Locks the shards for a transaction of r_instance that may then write. SQLSTATE GH002 where it is not
-- registered; nothing has happened then.
create function gatehouse_lock_shards(
  r_instance uuid, s_project text[], s_tenant text[], out epochs bigint[], out seqs bigint[]
)
language plpgsql volatile
as $$
begin
  perform gatehouse_begin_write();
  select l.epochs, l.seqs into epochs, seqs from gatehouse_lock_rows(s_project, s_tenant) l;
  if not gatehouse_may_write(r_instance) then perform gatehouse_refuse(r_instance); end if;
end
$$;

-- As gatehouse_write of migration 0002, for the instance r_instance. SQLSTATE GH002 where it is not
-- registered: nothing was applied by this statement.
create function gatehouse_write(
  r_instance uuid,
  check_applied boolean,
  s_project text[], s_tenant text[], s_offset int[], s_stamp bigint[],
  r_shard int[], r_commit uuid[], r_stamp bigint[], r_rpc text[], r_user text[], r_request_id text[],
  r_offset int[], r_applied boolean[], r_changes text[],
  g_request int[], g_effect int[], g_packed text[],
  g_namespace text[], g_object text[], g_relation text[],
  g_subject_namespace text[], g_subject text[], g_subject_relation text[],
  i_request int[], i_namespace text[], i_object text[], i_relation text[],
  i_subject_namespace text[], i_subject text[], i_subject_relation text[],
  i_expires bigint[], i_condition text[], i_params text[],
  d_shard int[], d_namespace text[], d_object text[], d_relation text[],
  d_subject_namespace text[], d_subject text[], d_subject_relation text[],
  out was_applied boolean,
  -- Comma-separated, by shard: the epoch, and the seq before the group.
  out epochs text, out bases text,
  -- Comma-separated, by request: r_offset and r_applied (1 or 0), where they were computed here.
  out offsets text, out effects text,
  -- Change rows by request, where they were made here.
  out made_changes text[],
  -- Comma-separated, by shard: the version of the project's settings under which this was committed.
  out settings text
)
language plpgsql volatile
-- Every access is by key. A plan made while a table was small must not scan it later.
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
-- The planner believes that plans for the very arrays are better, and would plan at every call.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_is_fast boolean;
  v_project text[];
  v_tenant text[];
  v_epoch bigint[];
  v_seq bigint[];
  v_known bigint[];
  v_settings bigint[];
  v_may_write boolean;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'writes need read committed';
  end if;
  perform pg_advisory_xact_lock_shared(1734440037, 1717923427);
  was_applied := false;
  v_is_fast := not check_applied and cardinality(g_request) = 0;
  if v_is_fast then
    -- Takes the locks and the seqs at once, in the order of the arrays.
    with moved as (
      insert into shard as s (project_id, tenant_id, seq, stamp)
      select k.project_id, k.tenant_id, k.position, k.stamp
      from unnest(s_project, s_tenant, s_offset, s_stamp) k (project_id, tenant_id, position, stamp)
      on conflict (project_id, tenant_id) do update set seq = s.seq + excluded.seq,
        stamp = case when excluded.seq = 0 then s.stamp else excluded.stamp end
      returning s.project_id, s.tenant_id, s.epoch, s.seq, s.settings_version
    )
    select array_agg(m.project_id), array_agg(m.tenant_id), array_agg(m.epoch), array_agg(m.seq),
        array_agg(m.settings_version)
      into v_project, v_tenant, v_epoch, v_seq, v_known from moved m;
    if v_project <> s_project or v_tenant <> s_tenant then
      raise exception 'shards were locked out of order';
    end if;
    for i in 1..cardinality(v_seq) loop v_seq[i] := v_seq[i] - s_offset[i]; end loop;
  else
    select l.epochs, l.seqs into v_epoch, v_seq from gatehouse_lock_rows(s_project, s_tenant) l;
  end if;

  -- In a new snapshot, now that the locks are held.
  select case when r_instance is null then not exists (select from instance n where n.protocol >= 2)
        else exists (select from instance n where n.id = r_instance and n.may_write) end,
      array(
      select coalesce(p.version, 0) from unnest(s_project) with ordinality k (id, n)
      left join project p on p.id = k.id order by k.n
    ) into v_may_write, v_settings;
  if not v_may_write then perform gatehouse_refuse(r_instance); end if;

  if check_applied then
    was_applied := exists (
      select from unnest(r_shard, r_commit) r (shard, commit_id)
      join tuple_change c on c.project_id = s_project[r.shard]
        and c.tenant_id = s_tenant[r.shard] and c.commit_id = r.commit_id
    );
    if was_applied then return; end if;
  end if;

  if cardinality(g_request) > 0 then
    with seen as (
      select g.n, g.request, g.packed,
        case g.effect when 1 then true when 0 then false else exists (
          select from relation_tuple t
          where t.project_id = s_project[r_shard[g.request]]
            and t.tenant_id = s_tenant[r_shard[g.request]]
            and t.namespace = g.namespace and t.object_id = g.object_id and t.relation = g.relation
            and t.subject_namespace = g.subject_namespace and t.subject_id = g.subject_id
            and t.subject_relation = g.subject_relation
        ) end as has_effect
      from unnest(
        g_request, g_effect, g_packed, g_namespace, g_object, g_relation,
        g_subject_namespace, g_subject, g_subject_relation
      ) with ordinality g (
        request, effect, packed, namespace, object_id, relation,
        subject_namespace, subject_id, subject_relation, n
      )
    ), made as (
      select s.request, bool_or(s.has_effect) as applied,
        '[' || string_agg(s.packed, ',' order by s.n) filter (where s.has_effect) || ']' as changes
      from seen s group by s.request
    ), decided as (
      select r.n, r.shard, m.request is not null as is_made,
        coalesce(m.applied, r.applied) as applied, coalesce(r.changes, m.changes) as changes
      from unnest(r_shard, r_applied, r_changes) with ordinality r (shard, applied, changes, n)
      left join made m on m.request = r.n
    ), numbered as (
      select d.*, sum(d.applied::int) over (partition by d.shard order by d.n) as position
      from decided d
    )
    select array_agg(d.position::int order by d.n), array_agg(d.applied order by d.n),
        array_agg(d.changes order by d.n),
        array_agg(case when d.is_made then d.changes end order by d.n)
      into r_offset, r_applied, r_changes, made_changes from numbered d;
  end if;

  insert into tuple_change (
    project_id, tenant_id, seq, stamp, commit_id, rpc, acting_user, request_id, changes,
    settings_version
  )
  select s_project[r.shard], s_tenant[r.shard], v_seq[r.shard] + r.position, r.stamp, r.commit_id,
    r.rpc, r.acting_user, r.request_id, r.changes, v_settings[r.shard]
  from unnest(
    r_shard, r_commit, r_stamp, r_rpc, r_user, r_request_id, r_offset, r_applied, r_changes
  ) r (shard, commit_id, stamp, rpc, acting_user, request_id, position, applied, changes)
  where r.applied;

  if cardinality(i_request) > 0 then
    insert into relation_tuple as t (
      project_id, tenant_id, namespace, object_id, relation,
      subject_namespace, subject_id, subject_relation,
      expires_at_us, condition_name, condition_params, seq
    )
    select s_project[r_shard[i.request]], s_tenant[r_shard[i.request]],
      i.namespace, i.object_id, i.relation, i.subject_namespace, i.subject_id, i.subject_relation,
      i.expires, i.condition, i.params, v_seq[r_shard[i.request]] + r_offset[i.request]
    from unnest(
      i_request, i_namespace, i_object, i_relation, i_subject_namespace, i_subject,
      i_subject_relation, i_expires, i_condition, i_params
    ) i (
      request, namespace, object_id, relation, subject_namespace, subject_id,
      subject_relation, expires, condition, params
    )
    on conflict (
      project_id, tenant_id, namespace, object_id, relation,
      subject_namespace, subject_id, subject_relation
    ) do update set expires_at_us = excluded.expires_at_us,
      condition_name = excluded.condition_name, condition_params = excluded.condition_params,
      seq = excluded.seq;
  end if;

  if cardinality(d_shard) > 0 then
    delete from relation_tuple t
    using unnest(
      d_shard, d_namespace, d_object, d_relation, d_subject_namespace, d_subject, d_subject_relation
    ) d (shard, namespace, object_id, relation, subject_namespace, subject_id, subject_relation)
    where t.project_id = s_project[d.shard] and t.tenant_id = s_tenant[d.shard]
      and t.namespace = d.namespace and t.object_id = d.object_id and t.relation = d.relation
      and t.subject_namespace = d.subject_namespace and t.subject_id = d.subject_id
      and t.subject_relation = d.subject_relation;
  end if;

  if v_is_fast then
    -- Seldom: the first write after a change of the project.
    if v_known <> v_settings then
      update shard s set settings_version = k.version
      from unnest(s_project, s_tenant, v_settings) k (project_id, tenant_id, version)
      where s.project_id = k.project_id and s.tenant_id = k.tenant_id
        and s.settings_version < k.version;
    end if;
  else
    update shard s set seq = v_seq[x.shard] + x.position, stamp = x.stamp,
      settings_version = greatest(s.settings_version, v_settings[x.shard])
    from (
      select distinct on (r.shard) r.shard, r.position, r.stamp
      from unnest(r_shard, r_offset, r_applied, r_stamp) r (shard, position, applied, stamp)
      where r.applied order by r.shard, r.position desc
    ) x
    where s.project_id = s_project[x.shard] and s.tenant_id = s_tenant[x.shard];
    offsets := array_to_string(r_offset, ',');
    effects := array_to_string(r_applied::int[], ',');
  end if;
  epochs := array_to_string(v_epoch, ',');
  bases := array_to_string(v_seq, ',');
  settings := array_to_string(v_settings, ',');
end
$$;
-- As gatehouse_delete_where of migration 0002, for the instance r_instance.
create function gatehouse_delete_where(
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
    with doomed as (
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

-- As gatehouse_delete_objects of migration 0003, for the instance r_instance.
create function gatehouse_delete_objects(
  r_instance uuid, project text, tenant text, namespaces text[], ids text[],
  the_commit uuid, the_rpc text, the_acting_user text, the_request_id text
)
returns table (
  epoch bigint, seq bigint, stamp bigint, deleted bigint, changes text, settings_version bigint
)
language plpgsql volatile
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_gone record;
  v_settings bigint;
begin
  perform gatehouse_begin_write();
  if not gatehouse_may_write(r_instance) then perform gatehouse_refuse(r_instance); end if;
  v_settings := coalesce((select p.version from project p where p.id = project), 0);
  with doomed as (
    select t.ctid as id from unnest(namespaces, ids) o (namespace, object_id)
      join relation_tuple t on t.project_id = project and t.tenant_id = tenant
        and t.namespace = o.namespace and t.object_id = o.object_id
    union
    select t.ctid from unnest(namespaces, ids) o (namespace, object_id)
      join relation_tuple t on t.project_id = project and t.tenant_id = tenant
        and t.subject_namespace = o.namespace and t.subject_id = o.object_id
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
    into v_gone from gone g;
  if v_gone.deleted = 0 then return; end if;
  return query with moved as (
      update shard s set seq = s.seq + 1, stamp = hashtextextended(gen_random_uuid()::text, 0),
          settings_version = greatest(s.settings_version, v_settings)
      where s.project_id = project and s.tenant_id = tenant
      returning s.epoch, s.seq, s.stamp
    ), recorded as (
      insert into tuple_change (
        project_id, tenant_id, seq, stamp, commit_id, rpc, acting_user, request_id, changes,
        settings_version
      )
      select project, tenant, m.seq, m.stamp, the_commit, the_rpc, the_acting_user,
        the_request_id, v_gone.changes, v_settings
      from moved m
    )
    select m.epoch, m.seq, m.stamp, v_gone.deleted, v_gone.changes, v_settings from moved m;
end
$$;

-- The signatures of the release before, which ran alone: while no instance of this one is registered.

create or replace function gatehouse_lock_shards(
  s_project text[], s_tenant text[], out epochs bigint[], out seqs bigint[]
)
language sql volatile
as $$
  select l.epochs, l.seqs from gatehouse_lock_shards(null, s_project, s_tenant) l
$$;

create or replace function gatehouse_write(
  check_applied boolean,
  s_project text[], s_tenant text[], s_offset int[], s_stamp bigint[],
  r_shard int[], r_commit uuid[], r_stamp bigint[], r_rpc text[], r_user text[], r_request_id text[],
  r_offset int[], r_applied boolean[], r_changes text[],
  g_request int[], g_effect int[], g_packed text[],
  g_namespace text[], g_object text[], g_relation text[],
  g_subject_namespace text[], g_subject text[], g_subject_relation text[],
  i_request int[], i_namespace text[], i_object text[], i_relation text[],
  i_subject_namespace text[], i_subject text[], i_subject_relation text[],
  i_expires bigint[], i_condition text[], i_params text[],
  d_shard int[], d_namespace text[], d_object text[], d_relation text[],
  d_subject_namespace text[], d_subject text[], d_subject_relation text[],
  out was_applied boolean, out epochs text, out bases text, out offsets text, out effects text,
  out made_changes text[]
)
language sql volatile
as $$
  select w.was_applied, w.epochs, w.bases, w.offsets, w.effects, w.made_changes from gatehouse_write(
    null, check_applied, s_project, s_tenant, s_offset, s_stamp, r_shard, r_commit, r_stamp,
    r_rpc, r_user, r_request_id, r_offset, r_applied, r_changes, g_request, g_effect, g_packed,
    g_namespace, g_object, g_relation, g_subject_namespace, g_subject, g_subject_relation,
    i_request, i_namespace, i_object, i_relation, i_subject_namespace, i_subject,
    i_subject_relation, i_expires, i_condition, i_params, d_shard, d_namespace, d_object,
    d_relation, d_subject_namespace, d_subject, d_subject_relation
  ) w
$$;
create or replace function gatehouse_delete_where(
  project text, tenants text[], the_user text, expired_by_us bigint, rows_max int,
  the_commit uuid, the_rpc text, the_acting_user text, the_request_id text
)
returns table (tenant text, epoch bigint, seq bigint, stamp bigint, deleted bigint, changes text)
language sql volatile
as $$
  select w.tenant, w.epoch, w.seq, w.stamp, w.deleted, w.changes from gatehouse_delete_where(
    null, project, tenants, the_user, expired_by_us, rows_max,
    the_commit, the_rpc, the_acting_user, the_request_id
  ) w
$$;

create or replace function gatehouse_delete_objects(
  project text, tenant text, namespaces text[], ids text[],
  the_commit uuid, the_rpc text, the_acting_user text, the_request_id text
)
returns table (epoch bigint, seq bigint, stamp bigint, deleted bigint, changes text)
language sql volatile
as $$
  select o.epoch, o.seq, o.stamp, o.deleted, o.changes from gatehouse_delete_objects(
    null, project, tenant, namespaces, ids, the_commit, the_rpc, the_acting_user, the_request_id
  ) o
$$;
