-- Runs beside: 0003_workspaces
-- Writes that are safe to send again, and imports that can be resumed.

-- The writes that named a key, as long as changes are kept.
create table tuple_write_key (
  project_id text collate "C" not null,
  tenant_id text collate "C" not null,
  key text collate "C" not null,
  -- SHA-256 of what was asked for.
  digest bytea not null,
  -- What was answered.
  epoch bigint not null,
  seq bigint not null,
  created_at timestamptz not null default now(),
  primary key (project_id, tenant_id, key)
);

create index tuple_write_key_by_age on tuple_write_key (created_at);

-- Imports, which are staged whole before any of their tuples is written.
create table tuple_import (
  import_no bigint generated always as identity primary key,
  project_id text collate "C" not null,
  tenant_id text collate "C" not null,
  -- The caller's name for it; null: cannot be resumed.
  import_id text collate "C",
  -- Who may go on with it: the attempt that began last.
  attempt uuid not null,
  -- Rows of the whole, once the stream has ended.
  total bigint,
  -- Rows that were applied, of these those that changed anything.
  applied bigint not null default 0,
  written bigint not null default 0,
  -- Of the last write; null while there was none.
  epoch bigint,
  seq bigint,
  touched_at timestamptz not null default now(),
  unique (project_id, tenant_id, import_id)
);

create index tuple_import_by_age on tuple_import (touched_at);

-- What has arrived, in parts that depend on the tuples alone: the same stream is cut in the same places.
create table tuple_import_part (
  import_no bigint not null references tuple_import on delete cascade,
  part integer not null,
  row_count integer not null,
  -- SHA-256 of its rows.
  digest bytea not null,
  primary key (import_no, part)
);

create table tuple_import_row (
  import_no bigint not null,
  -- Counts the tuples of the stream from 1.
  n bigint not null,
  namespace text collate "C" not null,
  object_id text collate "C" not null,
  relation text collate "C" not null,
  subject_namespace text collate "C" not null,
  subject_id text collate "C" not null,
  subject_relation text collate "C" not null,
  expires_at_us bigint,
  condition_name text collate "C",
  condition_params text,
  primary key (import_no, n)
);

-- Admits a part of an import, whose rows follow in the same transaction. An attempt that another one has
-- followed is refused: its caller has gone.
create function gatehouse_import_part(
  r_import bigint, r_attempt uuid, r_part integer, r_rows integer, r_digest bytea
) returns void
language plpgsql volatile
as $$
begin
  perform 1 from tuple_import i where i.import_no = r_import and i.attempt = r_attempt for share;
  if not found then
    raise exception 'import % was taken over', r_import using errcode = 'GH010';
  end if;
  insert into tuple_import_part (import_no, part, row_count, digest)
    values (r_import, r_part, r_rows, r_digest);
end
$$;

-- Writes the rows (r_from, r_to] of an import as one seq of its shard, whose row the caller has locked, as
-- the instance that was let in; they fit what the project asked for as of r_rules. Of a tuple that comes twice the later one counts; one that is there
-- already, with the same expiry and condition, is no change.
create function gatehouse_import_chunk(
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
  with part as (
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
  select count(*), '[' || string_agg(json_build_array(
      1, w.namespace, w.object_id, w.relation,
      w.subject_namespace, w.subject_id, w.subject_relation,
      w.expires_at_us::text, w.condition_name, w.condition_params
    )::text, ',') || ']'
    into v_written, v_changes from stored w;
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

-- Ends an import into a shard without tuples, whose rows were inserted by this transaction before it locked
-- the shard: with r_seq, which they carry, the shard moves by two, and what is loaded elsewhere has to be loaded
-- anew, since no change row tells of them. (The row of r_seq itself is there for its stamp.) found_as_left
-- is false, and nothing is done, where the shard is not as it was.
create function gatehouse_import_whole(
  r_import bigint, r_attempt uuid, r_rules bigint, r_total bigint, r_written bigint,
  project text, tenant text, r_epoch bigint, r_seq bigint, the_stamp bigint,
  the_commit uuid, the_rpc text, the_acting_user text, the_request_id text,
  out found_as_left boolean, out settings_version bigint
)
language plpgsql volatile
as $$
#variable_conflict use_column
declare
  v_settings bigint;
begin
  perform gatehouse_check_rules(project, r_rules);
  v_settings := coalesce((select p.version from project p where p.id = project), 0);
  settings_version := v_settings;
  update shard s set seq = r_seq, stamp = the_stamp, retained_from = r_seq,
      settings_version = greatest(s.settings_version, v_settings)
    where s.project_id = project and s.tenant_id = tenant
      and s.epoch = r_epoch and s.seq = r_seq - 2;
  found_as_left := found;
  if not found_as_left then return; end if;
  insert into tuple_change (
    project_id, tenant_id, seq, stamp, commit_id, rpc, acting_user, request_id, changes,
    settings_version
  ) values (
    project, tenant, r_seq, the_stamp, the_commit, the_rpc, the_acting_user, the_request_id,
    '[]', v_settings
  );
  update tuple_import i set applied = r_total, written = r_written,
      epoch = r_epoch, seq = r_seq, touched_at = now()
    where i.import_no = r_import and i.attempt = r_attempt and i.applied = 0;
  if not found then
    raise exception 'import % was taken over', r_import using errcode = 'GH010';
  end if;
end
$$;

-- Deletes the tuples of these keys that no write after r_until has touched, as one seq of the shard, whose row
-- the caller has locked, as the instance that was let in.
create function gatehouse_delete_keys(
  project text, tenant text, r_until bigint,
  k_namespace text[], k_object text[], k_relation text[],
  k_subject_namespace text[], k_subject text[], k_subject_relation text[],
  the_stamp bigint, the_commit uuid, the_rpc text, the_acting_user text, the_request_id text,
  out epoch bigint, out seq bigint, out deleted bigint, out changes text, out settings_version bigint
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
  v_deleted bigint;
  v_changes text;
begin
  select s.epoch, s.seq into v_epoch, v_seq
    from shard s where s.project_id = project and s.tenant_id = tenant;
  v_settings := coalesce((select p.version from project p where p.id = project), 0);
  with gone as (
    delete from relation_tuple t
    using unnest(
      k_namespace, k_object, k_relation, k_subject_namespace, k_subject, k_subject_relation
    ) k (namespace, object_id, relation, subject_namespace, subject_id, subject_relation)
    where t.project_id = project and t.tenant_id = tenant
      and t.namespace = k.namespace and t.object_id = k.object_id and t.relation = k.relation
      and t.subject_namespace = k.subject_namespace and t.subject_id = k.subject_id
      and t.subject_relation = k.subject_relation and t.seq <= r_until
    returning t.namespace, t.object_id, t.relation,
      t.subject_namespace, t.subject_id, t.subject_relation
  )
  select count(*), '[' || string_agg(json_build_array(
      2, g.namespace, g.object_id, g.relation,
      g.subject_namespace, g.subject_id, g.subject_relation, null, null, null
    )::text, ',') || ']'
    into v_deleted, v_changes from gone g;
  if v_deleted > 0 then
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
  epoch := v_epoch;
  seq := v_seq;
  deleted := v_deleted;
  changes := v_changes;
  settings_version := v_settings;
end
$$;
