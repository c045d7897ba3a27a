import type { ShardKey } from '../../model/relation-tuple.ts';

/** A shard has reached a revision. */
export type ChangeHint = { readonly shard: ShardKey; readonly revision: number };

/** Content of one notification. */
export type HintMessage = {
  /** Name of the sender; '' where the payload has none. */
  readonly sender: string;
  readonly hints: readonly ChangeHint[];
};

/** PostgreSQL takes payloads below 8,000 bytes (sql-notify.html). */
const PAYLOAD_BYTES_MAX = 7_999;

/*
 * Payloads, by release; an instance that does not understand one reads every shard that it holds.
 * 1: one hint, `["project","tenant",revision]`.
 * 2: hints of one tick of one instance, `{"from":"sender","at":["project","tenant",revision,…]}`. A reader of 1
 *    does not understand it.
 */

/**
 * The hints as few payloads, each of which fits. `sender` is short and plain: letters, digits, dashes.
 * A hint that fits into none by itself (ids of thousands of bytes) is left out.
 */
export function payloadsOf(sender: string, hints: readonly ChangeHint[]): readonly string[] {
  const head = `${prefixOf(sender)}[`;
  const emptyBytes = Buffer.byteLength(head) + 2;
  const payloads: string[] = [];
  let parts: string[] = [];
  let bytes = emptyBytes;
  const end = (): void => {
    if (parts.length > 0) payloads.push(`${head}${parts.join(',')}]}`);
    parts = [];
    bytes = emptyBytes;
  };
  for (const { shard, revision } of hints) {
    const part = `${JSON.stringify(shard.projectId)},${JSON.stringify(shard.tenantId)},${revision}`;
    const partBytes = Buffer.byteLength(part) + 1;
    if (emptyBytes + partBytes > PAYLOAD_BYTES_MAX) continue;
    if (bytes + partBytes > PAYLOAD_BYTES_MAX) end();
    parts.push(part);
    bytes += partBytes;
  }
  end();
  return payloads;
}

/** Start of a sender's payloads: enough to recognize one's own without reading it. */
export function prefixOf(sender: string): string {
  return `{"from":"${sender}","at":`;
}

/** Content of a payload of any release; undefined for anything else, since any session may notify. */
export function hintsIn(payload: string): HintMessage | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(payload);
  } catch {
    return undefined; // Not of ours.
  }
  if (Array.isArray(parsed)) {
    const hints = triplesIn(parsed.slice(0, 3));
    return hints === undefined ? undefined : { sender: '', hints };
  }
  if (typeof parsed !== 'object' || parsed === null) return undefined;
  const { from, at } = parsed as { readonly from?: unknown; readonly at?: unknown };
  if (typeof from !== 'string' || !Array.isArray(at)) return undefined;
  const hints = triplesIn(at);
  return hints === undefined ? undefined : { sender: from, hints };
}

/** Undefined unless there is at least one, and each is whole. */
function triplesIn(values: readonly unknown[]): readonly ChangeHint[] | undefined {
  if (values.length === 0 || values.length % 3 !== 0) return undefined;
  const hints: ChangeHint[] = [];
  for (let i = 0; i < values.length; i += 3) {
    const projectId = values[i];
    const tenantId = values[i + 1];
    const revision = values[i + 2];
    if (typeof projectId !== 'string' || typeof tenantId !== 'string') return undefined;
    if (typeof revision !== 'number' || !Number.isSafeInteger(revision) || revision < 0)
      return undefined;
    hints.push({ shard: { projectId, tenantId }, revision });
  }
  return hints;
}
