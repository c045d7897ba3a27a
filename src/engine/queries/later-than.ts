import type { TupleReader } from '../../model/tuple-reader.ts';
import { compareUtf8 } from '../../shared/utf8-order.ts';

/**
 * Says whether the id of an entity of `namespace` comes after `after` in UTF-8 byte order; every one does after ''.
 * `after` need not be the id of anything: then each comparison makes a text.
 */
export function laterThan(
  reader: TupleReader,
  namespace: number,
  after: string,
): (entity: number) => boolean {
  if (after === '') return () => true;
  const key = reader.entityId(namespace, after);
  if (key !== 0) return (entity) => reader.compareEntityIds(entity, key) > 0;
  return (entity) => compareUtf8(reader.entityText(entity), after) > 0;
}
