-- Runs beside: 0003_workspaces
-- Which transaction made a change, so that a follower of a whole project can ask for what one snapshot of the database
-- shows and an earlier one did not. Changes of before have none: no follower is that far behind.
alter table tuple_change add column txid xid8;
alter table tuple_change alter column txid set default pg_current_xact_id();

alter table shard
  -- The latest transaction whose changes are no longer kept.
  add column pruned_txid xid8,
  -- Changes up to this seq are of an earlier epoch. A dump brings along the transactions of another server, whose numbers
  -- are still to come in this one.
  add column epoch_base_seq bigint not null default 0;

create index shard_by_pruned_txid on shard (project_id, pruned_txid) where pruned_txid is not null;

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
