import type { Style } from '../../command-line/terminal.ts';
import type { TupleJson } from '../core/tuple-json.ts';
import { wordsOfTuple } from './tuple-words.ts';

/** A `gatehouse.v1.WatchResponse` as JSON has it. */
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

/** The end of a token says which write a line is of; its beginning is the same for all of a tenant. */
const TOKEN_SHOWN = 8;

/** Whether nothing changed. */
export function isHeartbeat({ changes, model_changed: model, resync }: WatchMessage): boolean {
  return changes === undefined && model === undefined && resync === undefined;
}

/** A message for people: a line for each change, none for a heartbeat. */
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
