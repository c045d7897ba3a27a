-- Locks shard rows in the order given, which is sorted, and makes the missing ones.
create function gatehouse_lock_shards(
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

-- Applies a group of write requests in one transaction (services/write-group.ts makes the arguments).
--
-- A function and not one statement with CTEs, because the tables must be read with a snapshot taken
-- after the shard rows were locked; and not several statements of the client, because nobody else
-- can write to the shards during a round trip.
--
-- Requests keep their own effect and seq: the n-th effective request of a shard gets seq + n. What a
-- request does to tuples that an earlier one of the group touched is known to the client; the rest
-- depends on which tuples exist, and comes in the g_ arrays.
--
-- Arrays of one prefix have one length:
--   s_  shards, sorted; others refer to them by position (1 is the first). s_offset: how many
--       effective requests each has, s_stamp: the stamp of the last; not used where g_ is not empty
--   r_  requests in order. r_offset: effective requests of the shard up to and including this one;
--       r_applied: whether it has an effect; r_changes: its change row. Ignored when g_ is not empty:
--       then both are computed here, and r_changes is null for the requests in g_
--   g_  every update of the requests whose effect depends on the table. g_effect: 1 yes, 0 no,
--       -1 exactly if the tuple exists
--   i_  final state of tuples that are present after the group
--   d_  final state of tuples that are absent after it
create function gatehouse_write(
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
  out made_changes text[]
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
begin
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
      returning s.project_id, s.tenant_id, s.epoch, s.seq
    )
    select array_agg(m.project_id), array_agg(m.tenant_id), array_agg(m.epoch), array_agg(m.seq)
      into v_project, v_tenant, v_epoch, v_seq from moved m;
    if v_project <> s_project or v_tenant <> s_tenant then
      raise exception 'shards were locked out of order';
    end if;
    for i in 1..cardinality(v_seq) loop v_seq[i] := v_seq[i] - s_offset[i]; end loop;
  else
    select l.epochs, l.seqs into v_epoch, v_seq from gatehouse_lock_shards(s_project, s_tenant) l;
  end if;

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
    project_id, tenant_id, seq, stamp, commit_id, rpc, acting_user, request_id, changes
  )
  select s_project[r.shard], s_tenant[r.shard], v_seq[r.shard] + r.position, r.stamp, r.commit_id,
    r.rpc, r.acting_user, r.request_id, r.changes
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

  if not v_is_fast then
    update shard s set seq = v_seq[x.shard] + x.position, stamp = x.stamp
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
end
$$;

-- Deletes tuples of some shards by condition, as one seq of each shard that held any: of one concrete
-- user (DeprovisionUser), or those whose expiry lies at or before a time (the purge), at most
-- rows_max of each shard. Shards come sorted and are locked in that order.
create function gatehouse_delete_where(
  project text, tenants text[], the_user text, expired_by_us bigint, rows_max int,
  the_commit uuid, the_rpc text, the_acting_user text, the_request_id text
)
returns table (tenant text, epoch bigint, seq bigint, stamp bigint, deleted bigint, changes text)
language plpgsql volatile
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_tenant text;
  v_shard record;
begin
  perform 1 from shard s
    where s.project_id = project and s.tenant_id = any (tenants)
    order by s.tenant_id for update;
  foreach v_tenant in array tenants loop
    -- Sent again after a lost connection: what it did then.
    return query select c.tenant_id, s.epoch, c.seq, c.stamp,
        json_array_length(c.changes::json)::bigint, c.changes
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
        update shard s set seq = s.seq + 1, stamp = hashtextextended(gen_random_uuid()::text, 0)
        where s.project_id = project and s.tenant_id = v_tenant
        returning s.epoch, s.seq, s.stamp
      ), recorded as (
        insert into tuple_change (
          project_id, tenant_id, seq, stamp, commit_id, rpc, acting_user, request_id, changes
        )
        select project, v_tenant, m.seq, m.stamp, the_commit, the_rpc, the_acting_user,
          the_request_id, v_shard.changes
        from moved m
      )
      select v_tenant, m.epoch, m.seq, m.stamp, v_shard.deleted, v_shard.changes from moved m;
  end loop;
end
$$;
