import { usage } from '../../command-line/parse-words.ts';
import { AppError } from '../../shared/app-error.ts';
import { call } from '../core/call.ts';
import type { CliLine } from '../core/command.ts';
import { connectionOf } from '../core/connection.ts';
import { EXIT_OK } from '../core/exit-codes.ts';
import { integerOfOption } from '../core/json-values.ts';
import { showAnswer } from '../core/rows.ts';
import { counted } from '../core/tuple-json.ts';
import { withHint } from './retries.ts';
import { FILTER_NAMES, filterOf } from './tuple-filter.ts';

type DeleteAnswer = { readonly count?: string; readonly consistency_token: string };

const OF_FILTER = [...FILTER_NAMES, 'whole-namespace', 'whole-tenant', 'dry-run', 'count-max'];
const OF_WORDS = ['file', 'mode', 'idempotency-key'];
const COUNT_MAX = 1e15 - 1;

/** True if a `delete` is by a filter. Errors: INVALID_REQUEST if it also names tuples. */
export function isByFilter(line: CliLine): boolean {
  const [ofFilter] = OF_FILTER.filter((option) => line.isSet(option));
  if (ofFilter === undefined) return false;
  const [ofWords] = OF_WORDS.filter((option) => line.isSet(option));
  if (line.words.length > 0) {
    throw usage(`--${ofFilter}: is of a delete by filter, which excludes ${line.words[0]}`);
  }
  if (ofWords !== undefined) {
    throw usage(`--${ofWords}: is of named tuples, and excludes --${ofFilter}`);
  }
  return true;
}

/**
 * `delete` by filter. Requires the same confirmations as the service, whole_namespace and
 * whole_tenant, with its own messages.
 */
export async function deleteByFilter(line: CliLine): Promise<number> {
  const connection = await connectionOf(line);
  const filter = filterOf(line);
  checkExtent(line);
  const { project, tenant } = connection;
  const isDry = line.isSet('dry-run');
  const countMax = integerOfOption('count-max', line.text('count-max'), 1, COUNT_MAX);
  const since = line.text('unchanged-since');
  const body = {
    ...(project === '' ? {} : { project_id: project }),
    ...(tenant === '' ? {} : { tenant_id: tenant }),
    filter,
    dry_run: isDry,
    whole_namespace: line.isSet('whole-namespace'),
    whole_tenant: line.isSet('whole-tenant'),
    ...(since === undefined ? {} : { unchanged_since: since }),
    ...(countMax === undefined ? {} : { count_max: String(countMax) }),
  };
  const method = 'gatehouse.v1.TupleService/DeleteTuples';
  const answer = await call<DeleteAnswer>(connection, method, body).catch((error: unknown) => {
    if (isDry || !(error instanceof AppError) || error.reason !== 'UNAVAILABLE') throw error;
    throw withHint(error, 'some may be deleted: the same command goes on');
  });
  showAnswer(line, answer, ({ count = '0', consistency_token: token }) => [
    `${isDry ? 'would delete' : 'deleted'} ${counted(count, 'tuple')}; consistency token ${token}`,
  ]);
  return EXIT_OK;
}

function checkExtent(line: CliLine): void {
  const isSet = (option: string): boolean => line.isSet(option);
  if (isSet('whole-tenant') && isSet('namespace')) {
    throw usage('--whole-tenant: excludes --namespace');
  }
  if (isSet('whole-namespace') && isSet('object')) {
    throw usage('--whole-namespace: excludes --object');
  }
  if (!isSet('namespace')) {
    if (isSet('whole-namespace')) throw usage('--whole-namespace: needs --namespace');
    if (isSet('whole-tenant')) return;
    throw usage('without --namespace every namespace is meant: say so by --whole-tenant');
  }
  if (!isSet('object') && !isSet('whole-namespace')) {
    throw usage('without --object every object is meant: say so by --whole-namespace');
  }
}
