import type { ArgsMap, Method, WorkerResponse } from '../../protocol/messages.ts';
import { rawMethodOf, wireFormatOf } from '../../protocol/messages.ts';
import type { RawAnswer, RawScope, ReadScope } from '../../protocol/shard-client.ts';
import type { AppError } from '../../shared/app-error.ts';
import { errorToData } from '../../shared/app-error.ts';
import type { PendingRequest, PendingState, ShardQueue } from './shard-queue.ts';

/** A body that the worker parses. The body is kept until the answer, for the memory of killers. */
export class RawRequest implements PendingRequest {
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
    return labelOf(this.shard, `raw ${rawMethodOf(this.opcode)} ${wireFormatOf(this.opcode)}`);
  }

  bodyBytes(): Uint8Array {
    return this.body;
  }
}

/** A parsed request: its caller holds a promise. */
export class ParsedRequest<M extends Method = Method> implements PendingRequest {
  readonly id: number;
  readonly shard: ShardQueue;
  readonly scope: ReadScope;
  readonly method: M;
  readonly args: ArgsMap[M];
  readonly bytes: number;
  readonly onResponse: (response: WorkerResponse) => void;
  readonly onError: (error: AppError) => void;
  state: PendingState = 'queued';

  constructor(
    id: number,
    shard: ShardQueue,
    scope: ReadScope,
    method: M,
    args: ArgsMap[M],
    onResponse: (response: WorkerResponse) => void,
    onError: (error: AppError) => void,
  ) {
    this.id = id;
    this.shard = shard;
    this.scope = scope;
    this.method = method;
    this.args = args;
    this.bytes = Array.isArray(args) ? 64 + args.length * 96 : 256;
    this.onResponse = onResponse;
    this.onError = onError;
  }

  fail(error: AppError): void {
    this.onError(error);
  }

  label(): string {
    return labelOf(this.shard, this.method);
  }

  bodyBytes(): Uint8Array {
    return Buffer.from(JSON.stringify(this.args));
  }
}

function labelOf(shard: ShardQueue, what: string): string {
  return JSON.stringify([shard.projectId, shard.tenantId, what]);
}
