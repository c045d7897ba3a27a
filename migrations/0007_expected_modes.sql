-- Runs beside: 0002_typed_wildcards
--
-- As gatehouse_write_modes of 0003_update_modes, which instances of before go on to call, but that what is expected is tried first:
-- where nothing that is inserted is stored, every insert is as its mode asks, and the group is that of plain writes. Where
-- something is stored, that much is undone, and each tuple is looked at.
--
-- The client says of each request what it does where nothing is stored. g_ has no effect below -1: what changes because a tuple is
-- stored already is put into it here. A request in g_ has all of its updates there, in order.

create function gatehouse_write_if(
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
  v_was_tried boolean := false;
  v_is_made boolean[];
begin
  -- Whether a tuple is there to be deleted only a look can say.
  if i_are_new and not 3 = any (d_mode) then
    begin
      select w.was_applied, w.epochs, w.bases, w.offsets, w.effects, w.made_changes, w.settings,
          w.found_stored
        into was_applied, epochs, bases, offsets, effects, made_changes, settings, found_stored
        from gatehouse_write(
        r_instance, check_applied, s_project, s_tenant, s_rules, s_offset, s_stamp, r_shard, r_commit,
        r_stamp, r_rpc, r_user, r_request_id, r_offset, r_applied, r_changes, g_request, g_effect, g_packed,
        g_namespace, g_object, g_relation, g_subject_namespace, g_subject, g_subject_relation, i_request,
        i_namespace, i_object, i_relation, i_subject_namespace, i_subject, i_subject_relation, i_expires,
        i_condition, i_params, d_shard, d_namespace, d_object, d_relation, d_subject_namespace, d_subject,
        d_subject_relation, true, false
        ) w;
      if was_applied or not found_stored then return; end if;
      raise exception 'a tuple of the group is stored' using errcode = 'GH011';
    exception when sqlstate 'GH011' then
      v_was_tried := true;
    end;
  end if;

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

  if v_has_same and cardinality(g_request) > 0 then
    select array_agg(case when s.n is null then k.effect else 0 end order by k.n)
      into g_effect
      from (
        select g.request, g.effect, g.n, row_number() over (partition by g.request order by g.n) as at
        from unnest(g_request, g_effect) with ordinality g (request, effect, n)
      ) k
      left join (
        select i.request, i.at, i.n
        from unnest(i_request, i_at, v_is_same) with ordinality i (request, at, is_same, n)
        where i.is_same
      ) s on s.request = k.request and s.at = k.at;
  end if;
  if v_has_same then
    -- The other requests of those tuples: their changes are made of what is left of them.
    select array_agg(exists (
          select from unnest(i_request, v_is_same) i (request, is_same)
          where i.request = r.n and i.is_same
        ) and r.n <> all (g_request) order by r.n)
      into v_is_made from unnest(r_shard) with ordinality r (shard, n);
    select g_request || coalesce(array_agg(k.request order by k.request, k.at), '{}'),
        g_effect || coalesce(array_agg(k.effect order by k.request, k.at), '{}'),
        g_packed || coalesce(array_agg(k.packed order by k.request, k.at), '{}')
      into g_request, g_effect, g_packed
      from (
        select i.request, i.at, (not i.is_same)::int as effect,
          '[1,' || substr(array_to_json(array[
            i.namespace, i.object_id, i.relation, i.subject_namespace, i.subject_id, i.subject_relation,
            i.expires::text, i.condition, i.params
          ])::text, 2) as packed
        from unnest(
          i_request, i_at, v_is_same, i_namespace, i_object, i_relation, i_subject_namespace, i_subject,
          i_subject_relation, i_expires, i_condition, i_params
        ) i (
          request, at, is_same, namespace, object_id, relation, subject_namespace, subject_id,
          subject_relation, expires, condition, params
        )
        where v_is_made[i.request]
        union all
        select d.request, d.at, 1,
          '[2,' || substr(array_to_json(array[
            d.namespace, d.object_id, d.relation, d.subject_namespace, d.subject_id, d.subject_relation,
            null, null, null
          ])::text, 2)
        from unnest(
          d_request, d_at, d_namespace, d_object, d_relation, d_subject_namespace, d_subject,
          d_subject_relation
        ) d (
          request, at, namespace, object_id, relation, subject_namespace, subject_id, subject_relation
        )
        where v_is_made[d.request]
      ) k;
    select array_agg(case when not r.is_made then r.changes end order by r.n) into r_changes
      from unnest(r_changes, v_is_made) with ordinality r (changes, is_made, n);
    -- Of these the effect is known, so that none is looked up by its key.
    g_namespace := g_namespace || array_fill(''::text, array[cardinality(g_request) - cardinality(g_namespace)]);
    g_object := g_object || array_fill(''::text, array[cardinality(g_request) - cardinality(g_object)]);
    g_relation := g_relation || array_fill(''::text, array[cardinality(g_request) - cardinality(g_relation)]);
    g_subject_namespace := g_subject_namespace
      || array_fill(''::text, array[cardinality(g_request) - cardinality(g_subject_namespace)]);
    g_subject := g_subject || array_fill(''::text, array[cardinality(g_request) - cardinality(g_subject)]);
    g_subject_relation := g_subject_relation
      || array_fill(''::text, array[cardinality(g_request) - cardinality(g_subject_relation)]);
  end if;
  if v_is_refused and cardinality(g_request) > 0 then
    select array_agg(case when v_refused_at[g.request] <> 0 then 0 else g.effect end order by g.n)
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
    d_subject_relation, case when 0 = any (i_mode) then i_are_new and not v_was_tried else true end, false
    ) w;
  found_stored := found_stored or v_was_tried or v_has_same or v_is_refused;
end
$$;
