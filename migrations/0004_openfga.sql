-- Runs beside: 0002_typed_wildcards
--
-- Stores of OpenFGA's HTTP API: which project each is, and the documents of its authorization models.

create table openfga_store (
  -- A ULID in upper case.
  id text collate "C" primary key,
  project_id text collate "C" not null unique,
  name text not null,
  -- The caller that made it, and alone lists and deletes it.
  created_by text collate "C" not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- Not null: it is not found any more.
  deleted_at timestamptz
);

create index openfga_store_by_creator on openfga_store (created_by, id) where deleted_at is null;

-- Written before the version of the project's model, whose comment names it: without such a version nobody sees it.
create table openfga_model (
  store_id text collate "C" not null,
  -- A ULID in upper case.
  id text collate "C" not null,
  -- The JSON as it came.
  document text not null,
  primary key (store_id, id)
);
