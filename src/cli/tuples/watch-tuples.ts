import { readServerEvents } from '../../command-line/server-events.ts';
import type { Style } from '../../command-line/terminal.ts';
import { AppError } from '../../shared/app-error.ts';
import { errorOfAnswer, serviceReason, request, unavailable } from '../core/call.ts';
import type { CliLine } from '../core/command.ts';
import { type ServiceConnection, connectionOf } from '../core/connection.ts';
import { EXIT_OK } from '../core/exit-codes.ts';
import { integerOfOption, isObject } from '../core/json-values.ts';
import { outputTaken } from '../core/rows.ts';
import { type TupleJson, wordsOfTuple } from '../core/tuple-json.ts';
import { Retries, withHint } from './retries.ts';
import { placeOf, queryOf } from './tuple-filter.ts';

/** A `gatehouse.v1.WatchResponse` in JSON. */
export type WatchMessage = {
  readonly changes?: {
    readonly tenant_id?: string;
    readonly updates: readonly { readonly op: string; readonly tuple: TupleJson }[];
    readonly consistency_token: string;
    readonly committed_at: string;
    readonly expired?: boolean;
  };
  readonly heartbeat?: object;
  readonly model_changed?: { readonly version: string };
  readonly resync?: { readonly tenant_id?: string; readonly consistency_token: string };
  readonly cursor: string;
};

/**
 * Characters shown of a token. Its end identifies the write; its beginning is the same for all
 * tokens of a tenant.
 */
const TOKEN_SHOWN = 8;

/** True if nothing changed. */
export function isHeartbeat({ changes, model_changed: model, resync }: WatchMessage): boolean {
  return changes === undefined && model === undefined && resync === undefined;
}

/** A message in readable form: a line for each change, none for a heartbeat. */
export function wordsOfMessage(
  { changes, model_changed: model, resync }: WatchMessage,
  hasTenant: boolean,
): readonly (readonly [text: string, style: Style])[] {
  if (model !== undefined) return [[`! model version ${model.version} from here on`, 'yellow']];
  if (resync !== undefined) {
    const { tenant_id: tenant = '', consistency_token: token } = resync;
    return [[`! tenant "${tenant}" was replaced: read it again at ${token} or later`, 'yellow']];
  }
  if (changes === undefined) return [];
  const { tenant_id: tenant = '', updates, consistency_token: token } = changes;
  const rest = [
    changes.committed_at,
    `…${token.slice(-TOKEN_SHOWN)}`,
    ...(hasTenant ? [`tenant "${tenant}"`] : []),
    ...(changes.expired === true ? ['expired'] : []),
  ].join('  ');
  return updates.map(({ op, tuple }) => {
    const isInsert = op === 'OP_INSERT';
    const text = `${isInsert ? '+' : '-'} ${wordsOfTuple(tuple)}  ${rest}`;
    return [text, isInsert ? 'green' : 'red'];
  });
}

const HEARTBEAT_SECONDS = { min: 1, default: 15, max: 60 } as const;
/** Milliseconds of silence beyond two missing heartbeats. */
const PATIENCE_MS = 5_000;
const COUNT_MAX = 1e15 - 1;
const READ_AGAIN = 'gatehouse export reads the tuples again, and says the token for --start-after';

/** `watch`. */
export async function watchTuples(line: CliLine): Promise<number> {
  const connection = placeOf(line, await connectionOf(line));
  const { min, max } = HEARTBEAT_SECONDS;
  const heartbeat = integerOfOption('heartbeat', line.text('heartbeat'), min, max);
  const countMax = integerOfOption('count', line.text('count'), 1, COUNT_MAX) ?? Infinity;
  const query = queryOf(line, connection);
  query.set('heartbeat_seconds', String(heartbeat ?? HEARTBEAT_SECONDS.default));
  const start = line.text('start-after');
  if (start !== undefined) query.set('start_after', start);
  const retries = new Retries(line, Infinity);
  try {
    await follow(line, connection, query, retries, countMax);
  } catch (error) {
    throw serviceReason(error) === 'WATCH_TOO_OLD' ? withHint(error, READ_AGAIN) : error;
  }
  return EXIT_OK;
}

/** Prints messages until `countMax` are shown, reconnecting as needed. */
async function follow(
  line: CliLine,
  connection: ServiceConnection,
  query: URLSearchParams,
  retries: Retries,
  countMax: number,
): Promise<void> {
  let count = 0;
  for (let attempt = 0; ; attempt += 1) {
    let isFirst = true;
    try {
      for await (const message of messagesOf(connection, query)) {
        retries.begun();
        retries.progressed();
        if (isFirst) sayFollowing(line, connection, attempt);
        isFirst = false;
        show(line, message);
        await outputTaken();
        // A new connection continues behind this message.
        query.set('start_after', message.cursor);
        if (!isHeartbeat(message)) count += 1;
        if (count >= countMax) return;
      }
      throw unavailable(connection, 'the stream ended');
    } catch (error) {
      await retries.wait(error, 'goes on behind the last message');
    }
  }
}

function sayFollowing({ screens }: CliLine, { url }: ServiceConnection, attempt: number): void {
  screens.notes.line(`following ${url}${attempt === 0 ? '' : ' again'}`);
}

function show(line: CliLine, message: WatchMessage): void {
  const { output } = line.screens;
  if (line.isSet('jsonl')) output.line(JSON.stringify(message));
  else {
    for (const [text, style] of wordsOfMessage(message, line.isSet('all-tenants'))) {
      output.line(output.paint(output.foreign(text), style));
    }
  }
}

/**
 * The messages of one connection. Errors: REFUSED; UNAVAILABLE, also after two missed heartbeats
 * plus PATIENCE_MS.
 */
async function* messagesOf(
  connection: ServiceConnection,
  query: URLSearchParams,
): AsyncGenerator<WatchMessage, void, undefined> {
  const silenceMs = 2000 * Number(query.get('heartbeat_seconds')) + PATIENCE_MS;
  const controller = new AbortController();
  const giveUp = (): void => {
    controller.abort(new Error(`nothing came for ${silenceMs / 1000} s`));
  };
  let timer = setTimeout(giveUp, silenceMs);
  try {
    const response = await request(connection, `/v1/watch?${query.toString()}`, {
      headers: { accept: 'text/event-stream' },
      signal: controller.signal,
    });
    for await (const { event, data } of readServerEvents(response)) {
      // No timeout applies while the message is being shown.
      clearTimeout(timer);
      if (event === 'error') throw errorOfAnswer(documentOf(data));
      if (data !== '') yield documentOf(data) as WatchMessage;
      timer = setTimeout(giveUp, silenceMs);
    }
  } catch (error) {
    throw error instanceof AppError ? error : unavailable(connection, error);
  } finally {
    clearTimeout(timer);
    controller.abort();
  }
}

function documentOf(data: string): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(data);
  if (!isObject(value)) throw new Error('the message is no object');
  return value;
}
