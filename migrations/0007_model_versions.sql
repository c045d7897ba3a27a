-- Runs beside: 0003_workspaces
-- The history of each project's model. What decides stands in project.model_json as before; it is always the
-- text of the newest version whose state is active, whoever wrote it.
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
  -- '' of what was written without saying so: by a release that keeps no versions, or by hand.
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

-- A model that was put into a project without a version gets one: by the release before, which knows of none,
-- or by an operator's SQL.
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

-- After the triggers, whose lock keeps writers of projects away until this is committed.
insert into model_version (
  project_id, version, model_json, model_sha256, created_at, created_by, rpc, request_id, comment,
  rolled_back_to, forced, state
)
select p.id, 1, p.model_json, encode(sha256(convert_to(p.model_json, 'UTF8')), 'hex'), p.updated_at,
  '', '', '', '', 0, false, 2
from project p where p.model_json <> '';
