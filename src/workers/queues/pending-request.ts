import { rawMethodOf, wireFormatOf } from '../../protocol/messages.ts';
import type { QueryAnswer, QueryCall } from '../../protocol/queries.ts';
import type { RawAnswer, RawScope, ReadScope } from '../../protocol/shard-client.ts';
import type { AppError } from '../../shared/app-error.ts';
import { errorToData } from '../../shared/app-error.ts';
import type { PendingRequest, PendingState, ShardQueue } from './shard-queue.ts';

/** A body that the worker parses. The body is kept until the answer, for the memory of killers. */
export class PendingRawRequest implements PendingRequest {
  readonly id: number;
  readonly shard: ShardQueue;
  readonly scope: ReadScope;
  readonly opcode: number;
  readonly body: Uint8Array;
  readonly expected: RawScope;
  readonly onAnswer: (answer: RawAnswer) => void;
  state: PendingState = 'queued';

  constructor(
    id: number,
    shard: ShardQueue,
    scope: ReadScope,
    opcode: number,
    body: Uint8Array,
    expected: RawScope,
    onAnswer: (answer: RawAnswer) => void,
  ) {
    this.id = id;
    this.shard = shard;
    this.scope = scope;
    this.opcode = opcode;
    this.body = body;
    this.expected = expected;
    this.onAnswer = onAnswer;
  }

  get bytes(): number {
    return this.body.length + 64;
  }

  fail(error: AppError): void {
    this.onAnswer({ kind: 'error', error: errorToData(error) });
  }

  label(): string {
    return labelOfRaw(this.shard, this.opcode);
  }

  bodyBytes(): Uint8Array {
    return this.body;
  }
}

/** A query that the gateway parsed: its caller holds a promise. */
export class ParsedRequest implements PendingRequest {
  readonly id: number;
  readonly shard: ShardQueue;
  readonly scope: ReadScope;
  readonly query: QueryCall;
  readonly bytes: number;
  readonly onAnswer: (answer: QueryAnswer, isPart: boolean) => void;
  readonly onError: (error: AppError) => void;
  state: PendingState = 'queued';

  constructor(
    id: number,
    shard: ShardQueue,
    scope: ReadScope,
    query: QueryCall,
    onAnswer: (answer: QueryAnswer, isPart: boolean) => void,
    onError: (error: AppError) => void,
  ) {
    this.id = id;
    this.shard = shard;
    this.scope = scope;
    this.query = query;
    this.bytes = 256 + bytesOf(query);
    this.onAnswer = onAnswer;
    this.onError = onError;
  }

  fail(error: AppError): void {
    this.onError(error);
  }

  label(): string {
    return labelOf(this.shard, this.query.kind);
  }

  bodyBytes(): Uint8Array {
    return Buffer.from(JSON.stringify(this.query.args, plainValue));
  }
}

const VALUE_BYTES = 16;

/** About what a query takes in memory and in its message: queries carry tuples and contexts of any size. O(values). */
function bytesOf(value: unknown): number {
  if (typeof value === 'string') return VALUE_BYTES + value.length;
  if (typeof value !== 'object' || value === null) return VALUE_BYTES;
  let bytes = VALUE_BYTES;
  for (const part of Object.values(value)) bytes += bytesOf(part);
  return bytes;
}

/** Converts a value for JSON, which has no bigint: expiry times. */
function plainValue(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}

/** The identity of a raw request of a shard besides its body. */
export function labelOfRaw(shard: ShardQueue, opcode: number): string {
  return labelOf(shard, `raw ${rawMethodOf(opcode)} ${wireFormatOf(opcode)}`);
}

function labelOf(shard: ShardQueue, what: string): string {
  return JSON.stringify([shard.projectId, shard.tenantId, what]);
}
