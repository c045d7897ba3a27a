-- Runs beside: 0002_typed_wildcards
--
-- Namespaces whose rules end with a version of a model although tuples are stored under them.

-- Those that the model in force declared when the version was written, and the version does not. Sorted. A release from
-- before looks for none.
alter table model_activation add column dropped_namespaces text[] collate "C" not null default '{}';
