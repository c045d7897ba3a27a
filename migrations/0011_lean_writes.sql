-- Runs beside: 0003_workspaces
-- Writes of groups with less work for each statement and each tuple. With two more arguments: the function of the release before goes on beside it.

-- As gatehouse_write of migration 0006, of which it says the same. What differs is how:
--   a group of one shard, which most are, moves it by its key, without arrays;
--   tuples that are expected to be new are inserted as such (i_are_new), which spares the look for each of them, its
--   speculative insertion and the WAL of that; where one is there already, that much is undone, and all are put in its place as
--   ever: found_stored says so, for who expects something of the next group;
--   deletes that touch each identity once (d_alone) are one statement, which says what there was: d_ has then exactly the
--   tuples of g_, in the same order.
-- i_expires, i_condition and i_params may be empty where no tuple has any.
create function gatehouse_write(
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
  out was_applied boolean,
  -- Comma-separated, by shard: the epoch, and the seq before the group.
  out epochs text, out bases text,
  -- Comma-separated, by request: r_offset and r_applied (1 or 0), where they were computed here.
  out offsets text, out effects text,
  -- Change rows by request, where they were made here.
  out made_changes text[],
  -- Comma-separated, by shard: the version of the project's settings under which this was committed.
  out settings text,
  out found_stored boolean
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
  v_gate text;
  v_is_fast boolean;
  v_is_one boolean := cardinality(s_project) = 1;
  v_project text[];
  v_tenant text[];
  v_epoch bigint[];
  v_seq bigint[];
  v_known bigint[];
  v_settings bigint[];
  v_rules bigint[];
  v_may_write boolean;
  v_one_project text := s_project[1];
  v_one_tenant text := s_tenant[1];
  v_one_epoch bigint;
  v_one_seq bigint;
  v_one_known bigint;
  v_one_settings bigint;
  v_one_rules bigint;
  v_one_count int := s_offset[1];
  v_one_stamp bigint := s_stamp[1];
  v_there int[];
  v_at int;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'writes need read committed';
  end if;
  -- An assignment is evaluated without a statement of its own.
  v_gate := pg_advisory_xact_lock_shared(1734440037, 1717923427)::text;
  was_applied := false;
  found_stored := false;
  v_is_fast := not check_applied and cardinality(g_request) = 0;
  if v_is_fast and v_is_one then
    update shard s set seq = s.seq + v_one_count,
        stamp = case when v_one_count = 0 then s.stamp else v_one_stamp end
      where s.project_id = v_one_project and s.tenant_id = v_one_tenant
      returning s.epoch, s.seq - v_one_count, s.settings_version
      into v_one_epoch, v_one_seq, v_one_known;
    if not found then
      insert into shard as s (project_id, tenant_id, seq, stamp)
        values (v_one_project, v_one_tenant, v_one_count, v_one_stamp)
        on conflict (project_id, tenant_id) do update set seq = s.seq + excluded.seq,
          stamp = case when excluded.seq = 0 then s.stamp else excluded.stamp end
        returning s.epoch, s.seq - v_one_count, s.settings_version
        into v_one_epoch, v_one_seq, v_one_known;
    end if;
    v_epoch := array[v_one_epoch];
    v_seq := array[v_one_seq];
    v_known := array[v_one_known];
  elsif v_is_fast then
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
  if v_is_one then
    select case when r_instance is null then not exists (select from instance n where n.protocol >= 2)
          else exists (select from instance n where n.id = r_instance and n.may_write) end,
        coalesce((select p.version from project p where p.id = v_one_project), 0),
        coalesce((select p.write_rules from project p where p.id = v_one_project), 0)
      into v_may_write, v_one_settings, v_one_rules;
    v_settings := array[v_one_settings];
    v_rules := array[v_one_rules];
  else
    select case when r_instance is null then not exists (select from instance n where n.protocol >= 2)
          else exists (select from instance n where n.id = r_instance and n.may_write) end,
        x.versions, x.rules
      into v_may_write, v_settings, v_rules
      from (
        select array_agg(coalesce(p.version, 0) order by k.n) as versions,
          array_agg(coalesce(p.write_rules, 0) order by k.n) as rules
        from unnest(s_project) with ordinality k (id, n) left join project p on p.id = k.id
      ) x;
  end if;
  if not v_may_write then perform gatehouse_refuse(r_instance); end if;

  if check_applied then
    was_applied := exists (
      select from unnest(r_shard, r_commit) r (shard, commit_id)
      join tuple_change c on c.project_id = s_project[r.shard]
        and c.tenant_id = s_tenant[r.shard] and c.commit_id = r.commit_id
    );
    if was_applied then return; end if;
  end if;

  if v_rules is distinct from coalesce(s_rules, array_fill(0::bigint, array[cardinality(s_project)])) then
    perform gatehouse_refuse_rules(s_project, s_rules, v_rules);
  end if;

  if cardinality(g_request) > 0 then
    if d_alone then
      with gone as (
        delete from relation_tuple t
        using unnest(
          d_shard, d_namespace, d_object, d_relation, d_subject_namespace, d_subject, d_subject_relation
        ) with ordinality d (
          shard, namespace, object_id, relation, subject_namespace, subject_id, subject_relation, n
        )
        where t.project_id = s_project[d.shard] and t.tenant_id = s_tenant[d.shard]
          and t.namespace = d.namespace and t.object_id = d.object_id and t.relation = d.relation
          and t.subject_namespace = d.subject_namespace and t.subject_id = d.subject_id
          and t.subject_relation = d.subject_relation
        returning d.n
      )
      select array_agg(g.n::int) into v_there from gone g;
      g_effect := array_fill(0, array[cardinality(g_request)]);
      foreach v_at in array coalesce(v_there, '{}') loop g_effect[v_at] := 1; end loop;
    end if;
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

  if cardinality(i_namespace) > 0 then
    found_stored := not i_are_new;
    if i_are_new then
      begin
        insert into relation_tuple (
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
        );
      exception when unique_violation then
        found_stored := true;
      end;
    end if;
    if found_stored then
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
  end if;

  if cardinality(d_shard) > 0 and not d_alone then
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

-- As gatehouse_import_chunk of migration 0008, of which it says the same: rows are tried as new ones, without a look for each, before they are
-- put in the place of what is stored; and their change is made as arrays of one type, not as lists of any.
create function gatehouse_import_rows(
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
        expires_at_us, condition_name, condition_params, seq
      )
      select project, tenant, p.namespace, p.object_id, p.relation,
        p.subject_namespace, p.subject_id, p.subject_relation,
        p.expires_at_us, p.condition_name, p.condition_params, v_seq + 1
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
        expires_at_us, condition_name, condition_params, seq
      )
      select project, tenant, p.namespace, p.object_id, p.relation,
        p.subject_namespace, p.subject_id, p.subject_relation,
        p.expires_at_us, p.condition_name, p.condition_params, v_seq + 1
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
