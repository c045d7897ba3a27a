import type { CliLine } from './command.ts';
import type { ServiceConnection } from './connection.ts';
import { integerOfOption, type JsonRecord, objectOfOption } from './json-values.ts';
import { tupleJson } from './tuple-json.ts';

/** A `gatehouse.v1.QueryScope` of the project, the tenant and the options READ. Errors: INVALID_REQUEST naming the option. */
export function scopeOf(line: CliLine, { project, tenant }: ServiceConnection): JsonRecord {
  const token = line.text('at-least');
  const input = line.text('input');
  const tuples = line.texts('with').map(tupleJson);
  const version = integerOfOption(
    'model-version',
    line.text('model-version'),
    1,
    Number.MAX_SAFE_INTEGER,
  );
  return {
    ...(project === '' ? {} : { project_id: project }),
    ...(tenant === '' ? {} : { tenant_id: tenant }),
    ...(token === undefined ? {} : { at_least_consistency_token: token }),
    ...(input === undefined ? {} : { context: objectOfOption('input', input) }),
    ...(tuples.length === 0 ? {} : { contextual_tuples: tuples }),
    ...(version === undefined ? {} : { model_version: String(version) }),
    ...(line.isSet('exact') ? { userset_mode: 'USERSET_MODE_EXACT' } : {}),
  };
}
