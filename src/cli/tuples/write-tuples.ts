import { usage } from '../../command-line/parse-words.ts';
import { call, serviceReason } from '../core/call.ts';
import type { CliLine } from '../core/command.ts';
import { type ServiceConnection, connectionOf } from '../core/connection.ts';
import { EXIT_OK } from '../core/exit-codes.ts';
import { showAnswer } from '../core/rows.ts';
import { counted, type TupleJson } from '../core/tuple-json.ts';
import { deleteByFilter, isByFilter } from './delete-tuples.ts';
import { withHint } from './retries.ts';
import { type GivenTuple, givenTuples, metadataOf, placed, withMetadata } from './tuple-input.ts';

type WriteAnswer = { readonly consistency_token: string; readonly replayed?: boolean };

const WRITE_MODES = {
  absent: 'UPDATE_MODE_ABSENT',
  'absent-or-identical': 'UPDATE_MODE_ABSENT_OR_IDENTICAL',
};
const DELETE_MODES = { present: 'UPDATE_MODE_PRESENT' };

/** `write`. */
export async function writeTuples(line: CliLine): Promise<number> {
  const connection = await connectionOf(line);
  const mode = modeOf(line, WRITE_MODES);
  const metadata = metadataOf(line);
  const given = givenTuples(line);
  const tuples = given.map(({ tuple }) => withMetadata(tuple, metadata));
  const answer = await send(line, connection, { op: 'OP_INSERT', mode, tuples, given });
  showAnswer(line, answer, ({ consistency_token: token, replayed }) => [
    replayed === true
      ? `written before under this key; consistency token ${token}`
      : `wrote ${counted(given.length, 'tuple')}; consistency token ${token}`,
  ]);
  return EXIT_OK;
}

/** `delete`, by words or by a filter. */
export async function deleteTuples(line: CliLine): Promise<number> {
  if (isByFilter(line)) return await deleteByFilter(line);
  const connection = await connectionOf(line);
  const mode = modeOf(line, DELETE_MODES);
  const given = givenTuples(line);
  const tuples = given.map(({ tuple }) => keyOf(tuple));
  const answer = await send(line, connection, { op: 'OP_DELETE', mode, tuples, given });
  const where = mode === undefined ? ' where stored' : '';
  showAnswer(line, answer, ({ consistency_token: token, replayed }) => [
    replayed === true
      ? `deleted before under this key; consistency token ${token}`
      : `deleted ${counted(given.length, 'tuple')}${where}; consistency token ${token}`,
  ]);
  return EXIT_OK;
}

type Updates = {
  readonly op: 'OP_INSERT' | 'OP_DELETE';
  /** Mode of all updates. */
  readonly mode: string | undefined;
  readonly tuples: readonly TupleJson[];
  /** Tuples with their origins. */
  readonly given: readonly GivenTuple[];
};

async function send(
  line: CliLine,
  connection: ServiceConnection,
  { op, mode, tuples, given }: Updates,
): Promise<WriteAnswer> {
  const { project, tenant } = connection;
  const since = line.text('unchanged-since');
  const key = line.text('idempotency-key');
  const body = {
    ...(project === '' ? {} : { project_id: project }),
    ...(tenant === '' ? {} : { tenant_id: tenant }),
    updates: tuples.map((tuple) => ({ op, tuple })),
    ...(mode === undefined ? {} : { modes: tuples.map(() => mode) }),
    ...(since === undefined ? {} : { preconditions: [{ unchanged_since: since }] }),
    ...(key === undefined ? {} : { idempotency_key: key }),
  };
  try {
    return await call<WriteAnswer>(connection, 'gatehouse.v1.TupleService/WriteTuples', body);
  } catch (error) {
    if (serviceReason(error) === 'BATCH_TOO_LARGE' || serviceReason(error) === 'BODY_TOO_LARGE') {
      const way =
        op === 'OP_INSERT'
          ? 'gatehouse import takes any number of tuples'
          : 'delete them in several commands, or by a filter';
      throw withHint(error, way);
    }
    throw placed(error, given);
  }
}

function modeOf(line: CliLine, modes: Readonly<Record<string, string>>): string | undefined {
  const text = line.text('mode');
  if (text === undefined) return undefined;
  const mode = Object.hasOwn(modes, text) ? modes[text] : undefined;
  if (mode === undefined) throw usage(`--mode: ${text} must be ${Object.keys(modes).join(' or ')}`);
  return mode;
}

/** The key of a tuple: a delete ignores the expiry and condition of a line. */
function keyOf({
  expires_at: _expiry,
  condition_name: _condition,
  condition_params: _params,
  ...key
}: TupleJson): TupleJson {
  return key;
}
