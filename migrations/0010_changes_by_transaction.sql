-- Runs beside: 0003_workspaces
-- Concurrently: tuple_change_by_txid
-- What a follower of a whole project looks up. Built beside running writers: the table holds every change that is kept.
create index concurrently tuple_change_by_txid on tuple_change (project_id, txid);
