-- Runs beside: 0003_workspaces
-- Models that say who may be a subject: what is written must fit them, and they go live in steps.

alter table project
  -- What tuples must fit: 0 nothing, else a number that is given to each such demand once. It changes with
  -- the model in force and the one that is pending.
  add column write_rules bigint not null default 0,
  -- The version that is on its way into force, and its model; 0 and '': none.
  add column pending_version bigint not null default 0,
  add column pending_json text not null default '';

-- The way of a version that did not go into force at once.
create table model_activation (
  project_id text collate "C" not null,
  version bigint not null,
  -- 1 pending, 2 active, 3 refused, 4 cancelled.
  state smallint not null check (state between 1 and 4),
  is_forced boolean not null,
  -- Whether every transaction has ended that may have written by the rules before.
  is_awaited boolean not null default false,
  -- Tenant and identity of the stored tuple that was looked at last; null: none yet.
  last_seen text[] collate "C",
  scanned bigint not null default 0,
  refused bigint not null default 0,
  -- JSON: [[tenant_id, [columns of relation_tuple from namespace on, without seq], problem], ...]
  examples text not null default '[]',
  started_at timestamptz not null default clock_timestamp(),
  ended_at timestamptz,
  -- Who wrote it, for the audit record of its end.
  created_by text not null,
  rpc text not null,
  request_id text not null,
  primary key (project_id, version)
);

create unique index model_activation_pending on model_activation (project_id) where state = 1;

-- A model that was put in by the release before, which knows of no rules, or by hand: what was asked for by the
-- models before it is over.
create function gatehouse_drop_rules() returns trigger language plpgsql as $$
begin
  new.write_rules := 0;
  new.pending_version := 0;
  new.pending_json := '';
  return new;
end
$$;

create trigger rules_dropped before update of model_json on project
  for each row when (
    new.model_json <> old.model_json and new.write_rules = old.write_rules and old.write_rules <> 0
  ) execute function gatehouse_drop_rules();

create function gatehouse_refuse_rules(s_project text[], s_rules bigint[], v_rules bigint[])
returns void language plpgsql as $$
declare
  v_changed text;
begin
  select string_agg(distinct k.id, ' ') into v_changed
    from unnest(s_project, s_rules, v_rules) k (id, known, rules)
    where k.rules <> coalesce(k.known, 0);
  raise exception 'what tuples must fit has changed: %', v_changed using errcode = 'GH003',
    detail = v_changed, hint = 'pass project.write_rules, as read before the tuples were looked at';
end
$$;

-- For transactions that write tuples by other statements, after they have locked their shards: SQLSTATE GH003
-- unless a project asks for what its tuples were found to fit.
create function gatehouse_check_rules(r_project text, r_rules bigint) returns void
language plpgsql volatile
as $$
declare
  v_rules bigint;
begin
  select p.write_rules into v_rules from project p where p.id = r_project;
  if coalesce(v_rules, 0) <> r_rules then
    perform gatehouse_refuse_rules(array[r_project], array[r_rules], array[coalesce(v_rules, 0)]);
  end if;
end
$$;

-- As gatehouse_write of migration 0004, for tuples that fit what their projects asked for as of s_rules (by shard;
-- null: nobody looked). SQLSTATE GH003 where a project asks for something else: nothing was applied, by this
-- statement or an earlier one with the same commits, and the detail names its projects.
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
  v_rules bigint[];
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
      x.versions, x.rules
    into v_may_write, v_settings, v_rules
    from (
      select array_agg(coalesce(p.version, 0) order by k.n) as versions,
        array_agg(coalesce(p.write_rules, 0) order by k.n) as rules
      from unnest(s_project) with ordinality k (id, n) left join project p on p.id = k.id
    ) x;
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

-- Of releases and statements that do not look at tuples: they may write where nothing is asked for.
create or replace function gatehouse_write(
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
  out was_applied boolean, out epochs text, out bases text, out offsets text, out effects text,
  out made_changes text[], out settings text
)
language sql volatile
as $$
  select w.was_applied, w.epochs, w.bases, w.offsets, w.effects, w.made_changes, w.settings
  from gatehouse_write(
    r_instance, check_applied, s_project, s_tenant, null, s_offset, s_stamp, r_shard, r_commit, r_stamp,
    r_rpc, r_user, r_request_id, r_offset, r_applied, r_changes, g_request, g_effect, g_packed,
    g_namespace, g_object, g_relation, g_subject_namespace, g_subject, g_subject_relation,
    i_request, i_namespace, i_object, i_relation, i_subject_namespace, i_subject,
    i_subject_relation, i_expires, i_condition, i_params, d_shard, d_namespace, d_object,
    d_relation, d_subject_namespace, d_subject, d_subject_relation
  ) w
$$;
