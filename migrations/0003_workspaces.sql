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

-- Deletes every tuple on the given objects of one shard, and every one whose subject is such an object
-- or a userset of it, as one seq. The caller holds the shard's row lock. No row where there were none.
create function gatehouse_delete_objects(
  project text, tenant text, namespaces text[], ids text[],
  the_commit uuid, the_rpc text, the_acting_user text, the_request_id text
)
returns table (epoch bigint, seq bigint, stamp bigint, deleted bigint, changes text)
language plpgsql volatile
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_gone record;
begin
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
      update shard s set seq = s.seq + 1, stamp = hashtextextended(gen_random_uuid()::text, 0)
      where s.project_id = project and s.tenant_id = tenant
      returning s.epoch, s.seq, s.stamp
    ), recorded as (
      insert into tuple_change (
        project_id, tenant_id, seq, stamp, commit_id, rpc, acting_user, request_id, changes
      )
      select project, tenant, m.seq, m.stamp, the_commit, the_rpc, the_acting_user,
        the_request_id, v_gone.changes
      from moved m
    )
    select m.epoch, m.seq, m.stamp, v_gone.deleted, v_gone.changes from moved m;
end
$$;
