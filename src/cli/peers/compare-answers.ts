import type { ImportedModel } from '../../language/peers/import-peer-model.ts';
import { type TupleNaming, tupleLine } from '../../language/peers/tuple-line.ts';
import { call } from '../core/call.ts';
import type { CliLine } from '../core/command.ts';
import type { ServiceConnection } from '../core/connection.ts';
import { isObject, type JsonRecord } from '../core/json-values.ts';
import { type PeerAnswer, type PeerQuery, type PeerSource, referenceText } from './peer-source.ts';

const BATCH = 500;

/** Differences and counts of the answers of both services. */
export type Comparison = {
  readonly asked: number;
  readonly allowed: number;
  readonly errors: number;
  readonly differences: readonly {
    readonly query: string;
    readonly there: string;
    readonly here: string;
  }[];
};

/** Sends the same queries to both services, and compares the answers. Errors: those of both. */
export async function compare(
  line: CliLine,
  connection: ServiceConnection,
  source: PeerSource,
  imported: ImportedModel,
  queries: readonly PeerQuery[],
): Promise<Comparison> {
  const differences: { query: string; there: string; here: string }[] = [];
  let allowed = 0;
  let errors = 0;
  for (let from = 0; from < queries.length; from += BATCH) {
    const part = queries.slice(from, from + BATCH);
    line.screens.notes.status(`${from} of ${queries.length} queries asked of both`);
    const [there, here] = await Promise.all([
      source.query(part),
      askHere(connection, imported, part),
    ]);
    for (const [index, query] of part.entries()) {
      const [theirs, ours] = [there[index], here[index]];
      if (theirs === undefined || ours === undefined) continue;
      if (ours.allowed) allowed += 1;
      if (theirs.error !== '') errors += 1;
      if (theirs.allowed === ours.allowed) continue;
      const { object, relation, subject } = query;
      differences.push({
        query: `${referenceText(object)}#${relation}@${referenceText(subject)}`,
        there: wordOf(theirs),
        here: wordOf(ours),
      });
    }
  }
  line.screens.notes.status('');
  return { asked: queries.length, allowed, errors, differences };
}

async function askHere(
  connection: ServiceConnection,
  imported: ImportedModel,
  queries: readonly PeerQuery[],
): Promise<readonly PeerAnswer[]> {
  const naming: TupleNaming = { names: imported.names, userType: imported.userType };
  const { project, tenant } = connection;
  const items = queries.map((query) => {
    const plain = {
      ...query,
      condition: undefined,
      context: undefined,
      expiresAt: undefined,
      place: '',
    };
    return { question: JSON.parse(tupleLine(plain, naming)) as JsonRecord };
  });
  const scope = {
    ...(project === '' ? {} : { project_id: project }),
    ...(tenant === '' ? {} : { tenant_id: tenant }),
    userset_mode: 'USERSET_MODE_EXACT',
    context: {},
  };
  type Results = { readonly results: readonly JsonRecord[] };
  const method = 'gatehouse.v1.QueryService/BatchCheck';
  const { results } = await call<Results>(connection, method, { scope, items });
  return queries.map((_, index) => {
    const result = results[index];
    if (!isObject(result)) return { allowed: false, error: 'no answer' };
    const error = typeof result['error'] === 'string' ? result['error'] : '';
    const isUndecided = result['undecided'] === true;
    return {
      allowed: result['allowed'] === true,
      error: error || (isUndecided ? 'undecided' : ''),
    };
  });
}

function wordOf({ allowed, error }: PeerAnswer): string {
  if (error !== '') return `error: ${error}`;
  return allowed ? 'allow' : 'deny';
}
