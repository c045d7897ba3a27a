import type { AnswerBatch, RequestBatch } from '../../src/protocol/messages.ts';
import { RAW_FIELDS, RAW_REQUEST_ID } from '../../src/protocol/messages.ts';
import type { Clock } from '../../src/shared/time/clock.ts';
import { systemClock } from '../../src/shared/time/clock.ts';
import { ShardHost } from '../../src/workers/host/shard-host.ts';
import type { WorkerSettings } from '../../src/workers/host/worker-settings.ts';
import { PackingShardIndex } from '../../src/workers/indexes/packing-index.ts';
import type { ShardSource } from '../../src/workers/shard/ports.ts';
import type { SlotEvents, SlotTransport } from '../../src/workers/slot/slot-transport.ts';

export type InProcessTransportOptions = {
  readonly settings: Omit<WorkerSettings, 'slot' | 'database'>;
  readonly source: ShardSource;
  readonly clock?: Clock | undefined;
};

/** A worker without its thread: the same host and actors, messages cloned as a port would. */
export class InProcessTransport implements SlotTransport {
  readonly #options: InProcessTransportOptions;
  readonly #underEvaluation = new Float64Array(1);
  /** What `utilization` says. */
  busy = 0;
  /** That it was sent. */
  requests = 0;
  /** Of the last raw one. */
  lastRawId = 0;
  #host: ShardHost | null = null;
  #events: SlotEvents | null = null;

  constructor(options: InProcessTransportOptions) {
    this.#options = options;
  }

  get host(): ShardHost | null {
    return this.#host;
  }

  async start(events: SlotEvents): Promise<void> {
    await Promise.resolve();
    const { settings, source, clock } = this.#options;
    this.#events = events;
    this.#host = new ShardHost({
      settings,
      clock: clock ?? systemClock,
      source,
      createIndex: (shared, user) => new PackingShardIndex(shared, user),
      post: (answers) => {
        const copy = structuredClone(answers);
        setImmediate(() => {
          if (this.#host !== null) events.onAnswers(copy);
        });
      },
      underEvaluation: this.#underEvaluation,
    });
    this.#host.start();
  }

  space(): null {
    return null;
  }

  async send(batch: RequestBatch): Promise<AnswerBatch> {
    const copy = structuredClone(batch);
    if (batch.raw.length > 0) {
      this.lastRawId = batch.raw[batch.raw.length - RAW_FIELDS + RAW_REQUEST_ID] ?? 0;
    }
    this.requests += batch.requests.length + batch.raw.length / RAW_FIELDS;
    await new Promise((resolve) => setImmediate(resolve));
    const host = this.#host;
    if (host === null) throw new Error('the worker has been stopped');
    const answers = structuredClone(host.handle(copy));
    await new Promise((resolve) => setImmediate(resolve));
    if (this.#host === null) throw new Error('the worker was lost');
    return answers;
  }

  underEvaluation(): number {
    return this.#underEvaluation[0] as number; // length 1
  }

  utilization(): number {
    return this.busy;
  }

  /** As a crash of the thread: nothing it held is answered any more. */
  crash(requestId = 0): void {
    if (this.#host === null) return;
    this.#underEvaluation[0] = requestId;
    this.#end();
    this.#events?.onLost(new Error('the worker crashed'));
  }

  async stop(): Promise<void> {
    await Promise.resolve();
    this.#end();
  }

  #end(): void {
    this.#host?.stop();
    this.#host = null;
  }
}
