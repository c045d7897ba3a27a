-- Runs beside: 0003_workspaces
-- Whether questions of gatehouse.v1 about relations that a typed model does not have are refused. The default is kept in
-- the catalogue: no row is rewritten. Releases before neither read nor write it.
alter table project add column refuse_unknown_relations boolean not null default false;
