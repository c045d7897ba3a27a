-- Runs beside: 0003_workspaces
-- Which shards an instance was asked for last: what the next one loads before it takes traffic. A hint; it may be
-- old, or emptied at any time.
create table recent_shards (
  -- Of one life of a process.
  instance_id uuid primary key,
  written_at timestamptz not null,
  -- JSON: [[project_id, tenant_id, bytes of the index], ...], the latest first.
  shards text not null
);
