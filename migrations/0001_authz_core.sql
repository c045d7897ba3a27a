-- Tables of the decision engine. Every key begins with (project_id, tenant_id): the shard.
-- Text is compared by bytes (collate "C"), which for UTF-8 is code point order everywhere.

create table deployment (
  singleton boolean primary key default true check (singleton),
  system_identifier text not null,
  timeline integer not null,
  -- Keys the truncated HMAC of consistency tokens; made once, at migration.
  token_key bytea not null,
  -- Raised for the whole deployment after a failover, a restore or a cold copy; shards follow it.
  epoch bigint not null,
  created_at timestamptz not null default now()
);

-- A shard made after a restore must not reuse an epoch of its lost namesake.
create function deployment_epoch() returns bigint
  language sql stable parallel safe
  return (select d.epoch from public.deployment d);

create table instance (
  id uuid primary key,
  region text collate "C" not null default '',
  started_at timestamptz not null default now(),
  lease_until timestamptz not null,
  shared_mode boolean not null default false
);

create table project (
  id text collate "C" primary key,
  name text not null,
  status smallint not null default 1,
  model_json text not null default '',
  data_region text collate "C" not null default '',
  max_check_reads integer not null default 0,
  -- Raised by every update: names the compiled model on every thread.
  version bigint not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

create table shard (
  project_id text collate "C" not null,
  tenant_id text collate "C" not null,
  epoch bigint not null default deployment_epoch(),
  seq bigint not null default 0,
  stamp bigint not null default 0,
  -- The first seq whose change rows still exist; a watermark below retained_from - 1 must reload.
  retained_from bigint not null default 1,
  primary key (project_id, tenant_id)
) with (
  fillfactor = 30,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 200,
  autovacuum_vacuum_cost_delay = 0
);

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
  seq bigint not null,
  primary key (
    project_id, tenant_id, namespace, object_id, relation,
    subject_namespace, subject_id, subject_relation
  )
);

-- DeprovisionUser and ExportSubjectGrants find a subject across the tenants of a project.
create index relation_tuple_by_subject on relation_tuple
  (project_id, subject_namespace, subject_id, subject_relation, tenant_id);

create index relation_tuple_by_expiry on relation_tuple (expires_at_us)
  where expires_at_us is not null;

create table tuple_change (
  project_id text collate "C" not null,
  tenant_id text collate "C" not null,
  seq bigint not null,
  stamp bigint not null,
  commit_id uuid not null,
  rpc text not null,
  acting_user text,
  request_id text not null,
  created_at timestamptz not null default now(),
  -- JSON: [[op, namespace, object_id, relation, subject_namespace, subject_id, subject_relation,
  --         expires_at_us as text or null, condition_name or null, condition_params text or null], ...]
  -- op 1 inserts (or replaces), 2 deletes.
  changes text not null,
  primary key (project_id, tenant_id, seq),
  unique (project_id, tenant_id, commit_id)
);

create index tuple_change_by_age on tuple_change (created_at);
