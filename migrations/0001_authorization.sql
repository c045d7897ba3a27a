-- The schema of the decision engine: tables by subject, then the functions that change them.
-- Replaces: 0001_authz_core
-- Replaces: 0002_write_functions
-- Replaces: 0003_workspaces
-- Replaces: 0004_instances
-- Replaces: 0005_recent_shards
-- Replaces: 0006_typed_models
-- Replaces: 0007_model_versions
-- Replaces: 0008_tuples_in_bulk
-- Replaces: 0009_watch
-- Replaces: 0010_changes_by_transaction
-- Replaces: 0011_lean_writes
-- Replaces: 0012_unknown_relations
--
-- Every key of a tenant's table begins with (project_id, tenant_id): the shard. Text is compared by
-- bytes (collate "C"), which for UTF-8 is code point order everywhere.
--
--   1 Deployment and instances   whose database this is, and who may write to it
--   2 Projects and models        what is decided by, and how a model comes into force
--   3 Shards, tuples, changes    what is decided of, in the order in which it changed
--   4 Writes with a key, imports what must not be done twice
--   5 Workspaces                 members, invitations, groups, enrollments, seats
--   6 Functions of instances     registration, leases, alone mode
--   7 Functions of models        versions, and the rules that tuples must fit
--   8 Functions of writes        how tuples change: the one way in
--
-- Columns stand in the order in which databases from before 0.1.0 have them, so that the two are equal.

-- ===========================================================================
-- 1 Deployment and instances
-- ===========================================================================

-- One row.
create table deployment (
  singleton boolean primary key default true check (singleton),
  system_identifier text not null,
  timeline integer not null,
  -- Keys the truncated HMAC of consistency tokens; made once, at migration.
  token_key bytea not null,
  -- Raised for the whole deployment after a failover, a restore or a cold copy; shards follow it.
  epoch bigint not null,
  created_at timestamptz not null default now(),
  -- When the present epoch began, if it is not the first.
  opened_at timestamptz
);

-- A shard made after a restore must not reuse an epoch of its lost namesake.
create function deployment_epoch() returns bigint
  language sql stable parallel safe
  return (select d.epoch from public.deployment d);

-- The processes that are registered. Whoever is not may commit nothing (section 6).
create table instance (
  id uuid primary key,
  region text collate "C" not null default '',
  started_at timestamptz not null default now(),
  lease_until timestamptz not null,
  -- False: alone mode. It answers from memory, and knows of every write, since it makes them all.
  shared_mode boolean not null default false,
  -- 2: checks its own row before each commit. Another value is no instance that may write.
  protocol smallint not null default 1,
  -- Host and process, for people.
  holder text not null default '',
  -- Whether every other instance had left alone mode after this row was there.
  may_write boolean not null default false,
  -- Counts how often this row became alone, so that an acknowledgement sent before does not count.
  alone_term bigint not null default 0
);

-- Which shards an instance was asked for last: what the next one loads before it takes traffic. A hint; it may be
-- old, or emptied at any time.
create table recent_shards (
  -- Of one life of a process.
  instance_id uuid primary key,
  written_at timestamptz not null,
  -- JSON: [[project_id, tenant_id, bytes of the index], ...], the latest first.
  shards text not null
);

-- ===========================================================================
-- 2 Projects and models
-- ===========================================================================

create table project (
  id text collate "C" primary key,
  name text not null,
  status smallint not null default 1,
  -- The model in force: the text of the newest version whose state is active. '': the built-in one.
  model_json text not null default '',
  data_region text collate "C" not null default '',
  max_check_reads integer not null default 0,
  -- Raised by every update: names the compiled model on every thread.
  version bigint not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- What tuples must fit: 0 nothing, else a number that is given to each such demand once. It changes with
  -- the model in force and the one that is pending.
  write_rules bigint not null default 0,
  -- The version that is on its way into force, and its model; 0 and '': none.
  pending_version bigint not null default 0,
  pending_json text not null default '',
  -- Whether gatehouse.v1 refuses queries about relations that a typed model does not have.
  refuse_unknown_relations boolean not null default false
);

-- The history of each project's model. What decides stands in project.model_json.
create table model_version (
  project_id text collate "C" not null,
  -- Counts up from 1 in each project.
  version bigint not null,
  model_json text not null,
  -- The readable form, where the model was written in it; '' otherwise.
  model_gate text not null default '',
  -- Of model_json as UTF-8, in hex.
  model_sha256 text collate "C" not null,
  created_at timestamptz not null,
  -- '': written by hand, without saying so.
  created_by text not null,
  rpc text not null,
  request_id text not null,
  comment text not null,
  -- The version that this one brought back; 0 is none.
  rolled_back_to bigint not null,
  forced boolean not null,
  -- 1 pending, 2 active (the newest of these is in force), 3 refused, 4 cancelled.
  state smallint not null,
  primary key (project_id, version)
);

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

-- At most one version of a project is pending.
create unique index model_activation_pending on model_activation (project_id) where state = 1;

-- ===========================================================================
-- 3 Shards, tuples, changes
-- ===========================================================================

-- A row for each shard: its lock orders what is written to it, and its position is the revision of
-- what is read. Written by every write: pages keep room for new versions of a row beside the old one.
create table shard (
  project_id text collate "C" not null,
  tenant_id text collate "C" not null,
  epoch bigint not null default deployment_epoch(),
  -- Counts the changes of the shard, from 1.
  seq bigint not null default 0,
  -- Random, of the change at seq: two histories that were cut at one seq differ in it.
  stamp bigint not null default 0,
  -- The first seq whose change rows still exist; a watermark below retained_from - 1 must reload.
  retained_from bigint not null default 1,
  -- The version of the project's settings, as read under the lock of this row.
  settings_version bigint not null default 0,
  -- The latest transaction whose changes are no longer kept.
  pruned_txid xid8,
  -- Changes up to this seq are of an earlier epoch. A dump brings along the transactions of another server, whose numbers
  -- are still to come in this one.
  epoch_base_seq bigint not null default 0,
  primary key (project_id, tenant_id)
) with (
  fillfactor = 30,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 200,
  autovacuum_vacuum_cost_delay = 0
);

create index shard_by_pruned_txid on shard (project_id, pruned_txid) where pruned_txid is not null;

-- The tuples as they are now.
create table relation_tuple (
  project_id text collate "C" not null,
  tenant_id text collate "C" not null,
  namespace text collate "C" not null,
  object_id text collate "C" not null,
  relation text collate "C" not null,
  -- user: ('', id, ''); wildcard: ('*', '', ''); userset or object: (namespace, id, relation)
  subject_namespace text collate "C" not null,
  subject_id text collate "C" not null,
  subject_relation text collate "C" not null,
  expires_at_us bigint,
  condition_name text collate "C",
  condition_params text,
  -- Of the change that wrote it last.
  seq bigint not null,
  primary key (
    project_id, tenant_id, namespace, object_id, relation,
    subject_namespace, subject_id, subject_relation
  )
);

-- DeprovisionUser and ExportSubjectGrants find a subject across the tenants of a project.
create index relation_tuple_by_subject on relation_tuple
  (project_id, subject_namespace, subject_id, subject_relation, tenant_id);

-- For the purge of what has expired.
create index relation_tuple_by_expiry on relation_tuple (expires_at_us)
  where expires_at_us is not null;

-- What changed, in order, for as long as changes are kept: indexes in memory follow it.
create table tuple_change (
  project_id text collate "C" not null,
  tenant_id text collate "C" not null,
  seq bigint not null,
  stamp bigint not null,
  -- Named by the writer, which finds by it whether a write whose answer was lost was applied.
  commit_id uuid not null,
  rpc text not null,
  acting_user text,
  request_id text not null,
  created_at timestamptz not null default now(),
  -- JSON: [[op, namespace, object_id, relation, subject_namespace, subject_id, subject_relation,
  --         expires_at_us as text or null, condition_name or null, condition_params text or null], ...]
  -- op 1 inserts (or replaces), 2 deletes.
  changes text not null,
  -- Of the project, under which this was committed.
  settings_version bigint not null default 0,
  -- So that a follower of a whole project can ask for what one snapshot of the database shows and an
  -- earlier one did not.
  txid xid8 default pg_current_xact_id(),
  primary key (project_id, tenant_id, seq),
  unique (project_id, tenant_id, commit_id)
);

create index tuple_change_by_age on tuple_change (created_at);

-- What a follower of a whole project looks up.
create index tuple_change_by_txid on tuple_change (project_id, txid);

-- ===========================================================================
-- 4 Writes with a key, imports
-- ===========================================================================

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

-- ===========================================================================
-- 5 Workspaces
-- ===========================================================================
-- Workspaces, members, invitations, groups, enrollments and seats. The grants of these rows are tuples
-- (relation_tuple), changed in the same transaction, which holds the row lock of the shard.
-- The constraints hold what must hold whichever instance writes.

create table workspace (
  project_id text collate "C" not null,
  tenant_id text collate "C" not null,
  id text collate "C" not null,
  slug text collate "C" not null,
  display_name text not null,
  -- 1 PERSONAL, 2 TEAM
  type smallint not null check (type in (1, 2)),
  owner_user_id text collate "C" not null,
  -- The role that the owner's membership has; part of the reference to it.
  owner_role smallint not null generated always as (1) stored,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (project_id, tenant_id, id),
  constraint workspace_slug unique (project_id, tenant_id, slug)
);

create unique index workspace_personal on workspace (project_id, tenant_id, owner_user_id)
  where type = 1;

create table membership (
  project_id text collate "C" not null,
  tenant_id text collate "C" not null,
  workspace_id text collate "C" not null,
  user_id text collate "C" not null,
  -- 1 OWNER, 2 ADMIN, 3 MEMBER, 4 GUEST
  role smallint not null check (role between 1 and 4),
  -- 1 ACTIVE, 2 INVITED, 3 SUSPENDED
  status smallint not null check (status between 1 and 3),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (project_id, tenant_id, workspace_id, user_id),
  constraint membership_role unique (project_id, tenant_id, workspace_id, user_id, role),
  constraint membership_owner_active check (role <> 1 or status = 1),
  constraint membership_workspace foreign key (project_id, tenant_id, workspace_id)
    references workspace (project_id, tenant_id, id) on delete cascade
);

-- At most one owner; the reference below makes it exactly one, and the one that the workspace names.
create unique index membership_owner on membership (project_id, tenant_id, workspace_id)
  where role = 1;

alter table workspace add constraint workspace_owner
  foreign key (project_id, tenant_id, id, owner_user_id, owner_role)
  references membership (project_id, tenant_id, workspace_id, user_id, role)
  deferrable initially deferred;

-- ListWorkspaces.
create index membership_by_user on membership (project_id, tenant_id, user_id, workspace_id)
  where status = 1;

create table invitation (
  project_id text collate "C" not null,
  tenant_id text collate "C" not null,
  id text collate "C" not null,
  workspace_id text collate "C" not null,
  email text not null,
  role smallint not null check (role between 2 and 4),
  -- 1 PENDING, 2 ACCEPTED, 3 REVOKED; a PENDING one past expires_at reads as EXPIRED.
  status smallint not null check (status between 1 and 3),
  invited_by_user_id text collate "C" not null,
  -- SHA-256 of the token; the token itself is nowhere.
  token_hash bytea not null check (length(token_hash) = 32),
  accepted_by_user_id text collate "C",
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  primary key (project_id, tenant_id, id),
  constraint invitation_token unique (project_id, tenant_id, token_hash),
  constraint invitation_accepted check ((status = 2) = (accepted_by_user_id is not null)),
  constraint invitation_workspace foreign key (project_id, tenant_id, workspace_id)
    references workspace (project_id, tenant_id, id) on delete cascade
);

create index invitation_by_workspace on invitation (project_id, tenant_id, workspace_id, id);

create table user_group (
  project_id text collate "C" not null,
  tenant_id text collate "C" not null,
  id text collate "C" not null,
  -- null: a standalone group
  workspace_id text collate "C",
  slug text collate "C" not null,
  display_name text not null,
  created_by_user_id text collate "C" not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (project_id, tenant_id, id),
  constraint user_group_slug unique nulls not distinct (project_id, tenant_id, workspace_id, slug),
  constraint user_group_workspace foreign key (project_id, tenant_id, workspace_id)
    references workspace (project_id, tenant_id, id) on delete cascade
);

create index user_group_by_workspace on user_group (project_id, tenant_id, workspace_id, id);
create index user_group_by_creator on user_group (project_id, tenant_id, created_by_user_id, id);

create table enrollment (
  project_id text collate "C" not null,
  tenant_id text collate "C" not null,
  group_id text collate "C" not null,
  -- 1 user, 2 group
  member_kind smallint not null check (member_kind in (1, 2)),
  member_id text collate "C" not null,
  -- 1 WAITLISTED, 2 ENROLLED, 3 ACTIVE, 4 COMPLETED, 5 DROPPED
  state smallint not null check (state between 1 and 5),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (project_id, tenant_id, group_id, member_kind, member_id),
  constraint enrollment_not_itself check (member_kind <> 2 or member_id <> group_id),
  constraint enrollment_group foreign key (project_id, tenant_id, group_id)
    references user_group (project_id, tenant_id, id) on delete cascade
);

-- Where a deleted group was enrolled.
create index enrollment_by_member_group on enrollment (project_id, tenant_id, member_id)
  where member_kind = 2;

create table seat_limit (
  project_id text collate "C" not null,
  tenant_id text collate "C" not null,
  sku text collate "C" not null,
  -- null is unlimited
  seats_max integer check (seats_max >= 0),
  -- Rows of seat_assignment, counted by the triggers below. May exceed a limit that was lowered.
  used integer not null default 0 check (used >= 0),
  primary key (project_id, tenant_id, sku)
);

create table seat_assignment (
  project_id text collate "C" not null,
  tenant_id text collate "C" not null,
  sku text collate "C" not null,
  user_id text collate "C" not null,
  assigned_at timestamptz not null default clock_timestamp(),
  primary key (project_id, tenant_id, sku, user_id)
);

create index seat_assignment_in_order on seat_assignment
  (project_id, tenant_id, sku, assigned_at, user_id);

-- Takes a seat or fails with SQLSTATE GH001. The update locks the row, so that concurrent inserts
-- follow each other and each sees what the one before it has taken.
create function gatehouse_take_seat() returns trigger language plpgsql as $$
begin
  insert into seat_limit (project_id, tenant_id, sku)
    values (new.project_id, new.tenant_id, new.sku) on conflict do nothing;
  update seat_limit l set used = l.used + 1
    where l.project_id = new.project_id and l.tenant_id = new.tenant_id and l.sku = new.sku
      and (l.seats_max is null or l.used < l.seats_max);
  if not found then
    raise exception 'all seats of % are taken', new.sku using errcode = 'GH001';
  end if;
  return null;
end
$$;

create function gatehouse_free_seat() returns trigger language plpgsql as $$
begin
  update seat_limit l set used = l.used - 1
    where l.project_id = old.project_id and l.tenant_id = old.tenant_id and l.sku = old.sku;
  return null;
end
$$;

create trigger seat_taken after insert on seat_assignment
  for each row execute function gatehouse_take_seat();
create trigger seat_freed after delete on seat_assignment
  for each row execute function gatehouse_free_seat();

-- ===========================================================================
-- 6 Functions of instances
-- ===========================================================================
-- Several instances may write to one database. Each is registered, and looks for its own row under the
-- locks of what it writes: one whose lease has ended commits nothing (SQLSTATE GH002).

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

-- ===========================================================================
-- 7 Functions of models
-- ===========================================================================

-- Adds a version and returns its number. The caller holds the project's row.
create function gatehouse_record_model(
  r_project_id text, r_model_json text, r_model_gate text, r_created_by text, r_rpc text,
  r_request_id text, r_comment text, r_rolled_back_to bigint, r_forced boolean, r_state smallint
) returns bigint language sql volatile as $$
  insert into model_version (
    project_id, version, model_json, model_gate, model_sha256, created_at, created_by, rpc,
    request_id, comment, rolled_back_to, forced, state
  )
  select r_project_id,
    1 + coalesce((select max(v.version) from model_version v where v.project_id = r_project_id), 0),
    r_model_json, r_model_gate, encode(sha256(convert_to(r_model_json, 'UTF8')), 'hex'),
    clock_timestamp(), r_created_by, r_rpc, r_request_id, r_comment, r_rolled_back_to, r_forced, r_state
  returning version
$$;

-- A model that was put into a project without a version gets one: what an operator's SQL wrote is part
-- of the history as well.
create function gatehouse_keep_model() returns trigger language plpgsql as $$
begin
  if new.model_json is distinct from coalesce((
    select v.model_json from model_version v where v.project_id = new.id and v.state = 2
    order by v.version desc limit 1), '')
  then
    perform gatehouse_record_model(new.id, new.model_json, '', '', '', '', '', 0, false, 2::smallint);
  end if;
  return null;
end
$$;

create trigger model_kept_at_first after insert on project
  for each row when (new.model_json <> '') execute function gatehouse_keep_model();

create trigger model_kept after update of model_json on project
  for each row when (new.model_json is distinct from old.model_json) execute function gatehouse_keep_model();

-- A model that was put in by hand, without rules of its own: what was asked for by the models before it
-- is over.
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

-- Fails with SQLSTATE GH003; the detail names the projects that ask for something else than the caller knows.
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

-- ===========================================================================
-- 8 Functions of writes
-- ===========================================================================
-- Functions and not statements with CTEs, because the tables must be read with a snapshot taken after the
-- shard rows were locked; and not several statements of the client, because nobody else can write to the
-- shards during a round trip. All look for the row of the instance under the locks.

-- Changes go by raising retained_from: those that are stored below it are deleted, and where the seq is raised with
-- it (an import as a whole) they were never written.
create function gatehouse_note_pruned() returns trigger
language plpgsql
as $$
declare
  v_pruned xid8;
begin
  if new.seq > old.seq then
    v_pruned := pg_current_xact_id();
  else
    -- Materialized, so that these rows are read by their key and not the whole project's by their transactions.
    with pruned as materialized (
      select t.txid from tuple_change t
      where t.project_id = new.project_id and t.tenant_id = new.tenant_id
        and t.seq < new.retained_from and t.seq > new.epoch_base_seq and t.txid is not null
    )
    select p.txid into v_pruned from pruned p order by p.txid desc limit 1;
  end if;
  if v_pruned is not null then
    new.pruned_txid := greatest(coalesce(old.pruned_txid, v_pruned), v_pruned);
  end if;
  return new;
end
$$;

create trigger pruned_noted before update of retained_from on shard
  for each row when (new.retained_from > old.retained_from) execute function gatehouse_note_pruned();

-- In a new epoch the transactions of the one before say nothing.
create function gatehouse_shard_epoch() returns trigger
language plpgsql
as $$
begin
  new.epoch_base_seq := new.seq;
  new.pruned_txid := null;
  return new;
end
$$;

create trigger shard_epoch_opened before update of epoch on shard
  for each row when (new.epoch <> old.epoch) execute function gatehouse_shard_epoch();

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

-- Applies a group of write requests in one transaction (services/write-groups/write-group.ts makes the arguments), for
-- the instance r_instance. SQLSTATE GH002 where it is not registered: nothing was applied by this statement.
-- The tuples fit what their projects asked for as of s_rules (by shard; null: nobody looked). SQLSTATE GH003
-- where a project asks for something else: nothing was applied, by this statement or an earlier one with the
-- same commits, and the detail names its projects.
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
--   i_  final state of tuples that are present after the group; i_expires, i_condition and i_params may be
--       empty where no tuple has any
--   d_  final state of tuples that are absent after it
--
-- What keeps it lean:
--   a group of one shard, which most are, moves it by its key, without arrays;
--   tuples that are expected to be new are inserted as such (i_are_new), which spares the look for each of
--   them, its speculative insertion and the WAL of that; where one is there already, that much is undone, and
--   all are put in its place by a look for each: found_stored says so, for who expects something of the next group;
--   deletes that touch each identity once (d_alone) are one statement, which says what there was: d_ has then
--   exactly the tuples of g_, in the same order.
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

-- Deletes tuples of some shards by condition, as one seq of each shard that held any: of one concrete
-- user (DeprovisionUser), or those whose expiry lies at or before a time (the purge), at most
-- rows_max of each shard. Shards come sorted and are locked in that order.
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

-- Deletes every tuple on the given objects of one shard, and every one whose subject is such an object
-- or a userset of it, as one seq. The caller holds the shard's row lock. No row where there were none.
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
-- the instance that was let in; they fit what the project asked for as of r_rules. Of a tuple that comes twice
-- the later one counts; one that is there already, with the same expiry and condition, is no change. Rows are
-- tried as new ones, without a look for each, before they are put in the place of what is stored.
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
