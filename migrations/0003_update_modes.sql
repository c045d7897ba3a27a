-- Runs beside: 0002_typed_wildcards
--
-- What an update asks of the tuple that it is about (modes of WriteTuples), and when a tuple was written.

-- ===========================================================================
-- 1 When a tuple was written
-- ===========================================================================

-- null: before this column was there. A replacement keeps it; a delete forgets it. Not in indexes in memory.
alter table relation_tuple add column written_at timestamptz;
alter table relation_tuple alter column written_at set default now();

-- null: when it is applied.
alter table tuple_import_row add column written_at timestamptz;

-- As in 0001_authorization, but for written_at.
create or replace function gatehouse_import_rows(
  r_import bigint, r_attempt uuid, r_rules bigint, r_from bigint, r_to bigint,
  project text, tenant text, the_stamp bigint,
  the_commit uuid, the_rpc text, the_acting_user text, the_request_id text,
  out epoch bigint, out seq bigint, out written bigint, out changes text, out settings_version bigint
)
language plpgsql volatile
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_epoch bigint;
  v_seq bigint;
  v_settings bigint;
  v_written bigint;
  v_changes text;
begin
  perform gatehouse_check_rules(project, r_rules);
  select s.epoch, s.seq into v_epoch, v_seq
    from shard s where s.project_id = project and s.tenant_id = tenant;
  v_settings := coalesce((select p.version from project p where p.id = project), 0);
  begin
    with part as materialized (
      select distinct on (
          r.namespace, r.object_id, r.relation,
          r.subject_namespace, r.subject_id, r.subject_relation
        ) r.*
      from tuple_import_row r
      where r.import_no = r_import and r.n > r_from and r.n <= r_to
      order by r.namespace, r.object_id, r.relation,
        r.subject_namespace, r.subject_id, r.subject_relation, r.n desc
    ), stored as (
      insert into relation_tuple (
        project_id, tenant_id, namespace, object_id, relation,
        subject_namespace, subject_id, subject_relation,
        expires_at_us, condition_name, condition_params, seq, written_at
      )
      select project, tenant, p.namespace, p.object_id, p.relation,
        p.subject_namespace, p.subject_id, p.subject_relation,
        p.expires_at_us, p.condition_name, p.condition_params, v_seq + 1,
        coalesce(p.written_at, now())
      from part p
    )
    select count(*), '[' || string_agg('[1,' || substr(array_to_json(array[
        p.namespace, p.object_id, p.relation,
        p.subject_namespace, p.subject_id, p.subject_relation,
        p.expires_at_us::text, p.condition_name, p.condition_params
      ])::text, 2), ',') || ']'
      into v_written, v_changes from part p;
  exception when unique_violation then
    -- At the first that is stored, which comes soon where many are.
    with part as materialized (
      select distinct on (
          r.namespace, r.object_id, r.relation,
          r.subject_namespace, r.subject_id, r.subject_relation
        ) r.*
      from tuple_import_row r
      where r.import_no = r_import and r.n > r_from and r.n <= r_to
      order by r.namespace, r.object_id, r.relation,
        r.subject_namespace, r.subject_id, r.subject_relation, r.n desc
    ), stored as (
      insert into relation_tuple as t (
        project_id, tenant_id, namespace, object_id, relation,
        subject_namespace, subject_id, subject_relation,
        expires_at_us, condition_name, condition_params, seq, written_at
      )
      select project, tenant, p.namespace, p.object_id, p.relation,
        p.subject_namespace, p.subject_id, p.subject_relation,
        p.expires_at_us, p.condition_name, p.condition_params, v_seq + 1,
        coalesce(p.written_at, now())
      from part p
      on conflict (
        project_id, tenant_id, namespace, object_id, relation,
        subject_namespace, subject_id, subject_relation
      ) do update set expires_at_us = excluded.expires_at_us,
        condition_name = excluded.condition_name, condition_params = excluded.condition_params,
        seq = excluded.seq
      where (t.expires_at_us, t.condition_name, t.condition_params)
        is distinct from (excluded.expires_at_us, excluded.condition_name, excluded.condition_params)
      returning t.namespace, t.object_id, t.relation,
        t.subject_namespace, t.subject_id, t.subject_relation,
        t.expires_at_us, t.condition_name, t.condition_params
    )
    select count(*), '[' || string_agg('[1,' || substr(array_to_json(array[
        w.namespace, w.object_id, w.relation,
        w.subject_namespace, w.subject_id, w.subject_relation,
        w.expires_at_us::text, w.condition_name, w.condition_params
      ])::text, 2), ',') || ']'
      into v_written, v_changes from stored w;
  end;
  if v_written > 0 then
    v_seq := v_seq + 1;
    update shard s set seq = v_seq, stamp = the_stamp,
        settings_version = greatest(s.settings_version, v_settings)
      where s.project_id = project and s.tenant_id = tenant;
    insert into tuple_change (
      project_id, tenant_id, seq, stamp, commit_id, rpc, acting_user, request_id, changes,
      settings_version
    ) values (
      project, tenant, v_seq, the_stamp, the_commit, the_rpc, the_acting_user, the_request_id,
      v_changes, v_settings
    );
  end if;
  update tuple_import i set applied = r_to, written = i.written + v_written,
      epoch = v_epoch, seq = v_seq, touched_at = now()
    where i.import_no = r_import and i.attempt = r_attempt and i.applied = r_from;
  if not found then
    raise exception 'import % was taken over', r_import using errcode = 'GH010';
  end if;
  epoch := v_epoch;
  seq := v_seq;
  written := v_written;
  changes := v_changes;
  settings_version := v_settings;
end
$$;

-- ===========================================================================
-- 2 Modes of updates
-- ===========================================================================

-- As gatehouse_write, for a group in which updates ask something of the tuple that they are about. A request with such
-- an update shares no identity with another request of the group: the client sees to that (services/write-groups/update-modes.ts).
-- So each asks about what was stored before the group.
--
--   i_at, d_at      the position of the update in its request, 1 is the first
--   i_mode          0: replaces what is stored; 1: nothing may be stored; 2: nothing else may be stored, and what is
--                   stored with the same expiry and condition stays as it is
--   d_mode          0: may be missing; 3: must be stored
--   d_request       the request of each of d_
--   g_effect        beyond those of gatehouse_write: -1 - n, n >= 1: exactly if the n-th of i_ is not stored
--
-- A tuple that has expired is stored. A request with an update that is not to be fails as a whole, and its effect is
-- that of one without effect. refused_at, comma-separated, by request: the position of its first such update, or 0;
-- null where none was refused.
create function gatehouse_write_modes(
  r_instance uuid,
  check_applied boolean,
  s_project text[], s_tenant text[], s_rules bigint[], s_offset int[], s_stamp bigint[],
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
  i_are_new boolean, d_alone boolean,
  i_at int[], i_mode int[], d_request int[], d_at int[], d_mode int[],
  out was_applied boolean, out epochs text, out bases text, out offsets text, out effects text,
  out made_changes text[], out settings text, out found_stored boolean,
  out refused_at text
)
language plpgsql volatile
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_row record;
  v_refused_at int[] := array_fill(0, array[cardinality(r_shard)]);
  v_is_same boolean[] := array_fill(false, array[cardinality(i_request)]);
  v_is_refused boolean := false;
  v_has_same boolean := false;
begin
  perform gatehouse_begin_write();
  perform gatehouse_lock_rows(s_project, s_tenant);
  -- In a new snapshot, now that the locks are held.
  for v_row in
    select i.n, i.request, i.at, i.mode = 2
        and t.expires_at_us is not distinct from i.expires
        and t.condition_name is not distinct from i.condition
        and t.condition_params is not distinct from i.params as is_same
    from unnest(
      i_request, i_at, i_mode, i_namespace, i_object, i_relation, i_subject_namespace, i_subject,
      i_subject_relation, i_expires, i_condition, i_params
    ) with ordinality i (
      request, at, mode, namespace, object_id, relation, subject_namespace, subject_id,
      subject_relation, expires, condition, params, n
    )
    join relation_tuple t
      on t.project_id = s_project[r_shard[i.request]] and t.tenant_id = s_tenant[r_shard[i.request]]
      and t.namespace = i.namespace and t.object_id = i.object_id and t.relation = i.relation
      and t.subject_namespace = i.subject_namespace and t.subject_id = i.subject_id
      and t.subject_relation = i.subject_relation
    where i.mode <> 0
    union all
    select null, d.request, d.at, false
    from unnest(
      d_request, d_at, d_mode, d_namespace, d_object, d_relation, d_subject_namespace, d_subject,
      d_subject_relation
    ) d (
      request, at, mode, namespace, object_id, relation, subject_namespace, subject_id,
      subject_relation
    )
    where d.mode = 3 and not exists (
      select from relation_tuple t
      where t.project_id = s_project[r_shard[d.request]]
        and t.tenant_id = s_tenant[r_shard[d.request]]
        and t.namespace = d.namespace and t.object_id = d.object_id and t.relation = d.relation
        and t.subject_namespace = d.subject_namespace and t.subject_id = d.subject_id
        and t.subject_relation = d.subject_relation
    )
  loop
    if v_row.is_same then
      v_has_same := true;
      v_is_same[v_row.n] := true;
    elsif v_refused_at[v_row.request] = 0 or v_row.at < v_refused_at[v_row.request] then
      v_is_refused := true;
      v_refused_at[v_row.request] := v_row.at;
    end if;
  end loop;

  if cardinality(g_request) > 0 then
    select array_agg(
        case when v_refused_at[g.request] <> 0 then 0
          when g.effect < -1 then (not v_is_same[-1 - g.effect])::int
          else g.effect end
        order by g.n)
      into g_effect from unnest(g_request, g_effect) with ordinality g (request, effect, n);
  end if;
  if v_has_same or v_is_refused then
    select coalesce(array_agg(i.request order by i.n), '{}'),
        coalesce(array_agg(i.namespace order by i.n), '{}'),
        coalesce(array_agg(i.object_id order by i.n), '{}'),
        coalesce(array_agg(i.relation order by i.n), '{}'),
        coalesce(array_agg(i.subject_namespace order by i.n), '{}'),
        coalesce(array_agg(i.subject_id order by i.n), '{}'),
        coalesce(array_agg(i.subject_relation order by i.n), '{}'),
        coalesce(array_agg(i.expires order by i.n), '{}'),
        coalesce(array_agg(i.condition order by i.n), '{}'),
        coalesce(array_agg(i.params order by i.n), '{}')
      into i_request, i_namespace, i_object, i_relation, i_subject_namespace, i_subject,
        i_subject_relation, i_expires, i_condition, i_params
      from unnest(
        i_request, i_namespace, i_object, i_relation, i_subject_namespace, i_subject,
        i_subject_relation, i_expires, i_condition, i_params, v_is_same
      ) with ordinality i (
        request, namespace, object_id, relation, subject_namespace, subject_id, subject_relation,
        expires, condition, params, is_same, n
      )
      where v_refused_at[i.request] = 0 and not i.is_same;
  end if;
  if v_is_refused then
    select coalesce(array_agg(d.shard order by d.n), '{}'),
        coalesce(array_agg(d.namespace order by d.n), '{}'),
        coalesce(array_agg(d.object_id order by d.n), '{}'),
        coalesce(array_agg(d.relation order by d.n), '{}'),
        coalesce(array_agg(d.subject_namespace order by d.n), '{}'),
        coalesce(array_agg(d.subject_id order by d.n), '{}'),
        coalesce(array_agg(d.subject_relation order by d.n), '{}')
      into d_shard, d_namespace, d_object, d_relation, d_subject_namespace, d_subject,
        d_subject_relation
      from unnest(
        d_request, d_shard, d_namespace, d_object, d_relation, d_subject_namespace, d_subject,
        d_subject_relation
      ) with ordinality d (
        request, shard, namespace, object_id, relation, subject_namespace, subject_id,
        subject_relation, n
      )
      where v_refused_at[d.request] = 0;
    select array_agg(r.applied and r.refused_at = 0 order by r.n) into r_applied
      from unnest(r_applied, v_refused_at) with ordinality r (applied, refused_at, n);
    refused_at := array_to_string(v_refused_at, ',');
    if cardinality(g_request) = 0 then
      -- Effects and positions are computed where g_ says anything: here that one of the refused does nothing.
      g_request := array[array_position(r_applied, false)];
      g_effect := array[0];
      g_packed := array[''];
      g_namespace := array[''];
      g_object := array[''];
      g_relation := array[''];
      g_subject_namespace := array[''];
      g_subject := array[''];
      g_subject_relation := array[''];
    end if;
  end if;

  select w.was_applied, w.epochs, w.bases, w.offsets, w.effects, w.made_changes, w.settings,
      w.found_stored
    into was_applied, epochs, bases, offsets, effects, made_changes, settings, found_stored
    from gatehouse_write(
    r_instance, check_applied, s_project, s_tenant, s_rules, s_offset, s_stamp, r_shard, r_commit,
    r_stamp, r_rpc, r_user, r_request_id, r_offset, r_applied, r_changes, g_request, g_effect, g_packed,
    g_namespace, g_object, g_relation, g_subject_namespace, g_subject, g_subject_relation, i_request,
    i_namespace, i_object, i_relation, i_subject_namespace, i_subject, i_subject_relation, i_expires,
    i_condition, i_params, d_shard, d_namespace, d_object, d_relation, d_subject_namespace, d_subject,
    d_subject_relation, i_are_new, false
    ) w;
end
$$;
