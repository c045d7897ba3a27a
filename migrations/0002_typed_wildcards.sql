-- Runs beside: 0002_typed_wildcards
--
-- Every object of a namespace as a subject: ('*', namespace, ''). The wildcard of users stays ('*', '', ''). A release from
-- before reads any subject_namespace '*' as every user, and would let in whom the tuple does not name. So none may run beside
-- this. It does not start on this schema (schema_beside), and one that runs already can read no tuples any more: each
-- statement by which it reads a head, a change or a snapshot calls the function that is renamed here. What it has in memory
-- holds no such tuple, since none is written before this file was run.

alter function deployment_epoch() rename to gatehouse_epoch;

-- Of databases from before 0.1.0: only the versions before it call them.
drop function if exists gatehouse_delete_objects(
  text, text, text[], text[], uuid, text, text, text
);
drop function if exists gatehouse_delete_where(
  text, text[], text, bigint, integer, uuid, text, text, text
);
drop function if exists gatehouse_import_chunk(
  bigint, uuid, bigint, bigint, bigint, text, text, bigint, uuid, text, text, text
);
drop function if exists gatehouse_lock_shards(text[], text[]);
drop function if exists gatehouse_write(
  boolean, text[], text[], integer[], bigint[], integer[], uuid[], bigint[], text[], text[], text[],
  integer[], boolean[], text[], integer[], integer[], text[], text[], text[], text[], text[], text[], text[],
  integer[], text[], text[], text[], text[], text[], text[], bigint[], text[], text[], integer[], text[],
  text[], text[], text[], text[], text[]
);
drop function if exists gatehouse_write(
  uuid, boolean, text[], text[], integer[], bigint[], integer[], uuid[], bigint[], text[], text[], text[],
  integer[], boolean[], text[], integer[], integer[], text[], text[], text[], text[], text[], text[], text[],
  integer[], text[], text[], text[], text[], text[], text[], bigint[], text[], text[], integer[], text[],
  text[], text[], text[], text[], text[]
);
drop function if exists gatehouse_write(
  uuid, boolean, text[], text[], bigint[], integer[], bigint[], integer[], uuid[], bigint[], text[], text[],
  text[], integer[], boolean[], text[], integer[], integer[], text[], text[], text[], text[], text[], text[],
  text[], integer[], text[], text[], text[], text[], text[], text[], bigint[], text[], text[], integer[],
  text[], text[], text[], text[], text[], text[]
);
