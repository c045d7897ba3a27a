import { MessageChannel } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { Piscina } from 'piscina';
import type {
  AnswerBatch,
  RequestBatch,
  WorkerTask,
  WorkerTaskReply,
} from '../protocol/messages.ts';
import { PROTOCOL_VERSION } from '../protocol/messages.ts';
import type { CreateTransport, SlotEvents, SlotTransport } from './slot-transport.ts';
import type { WorkerSettings } from './worker-settings.ts';

export type PiscinaTransportOptions = {
  readonly settings: (slot: number) => WorkerSettings;
  /** Replaces the worker's module; for tests. */
  readonly filename?: string | undefined;
  /** Heap limits of a worker, MiB. */
  readonly oldGenerationMbMax?: number | undefined;
};

const BATCHES_AND_HELLO = 3;

/**
 * Workers on threads: one single-thread Piscina per life of a slot, so that a slot is one worker
 * and a lost worker is told from a busy one. (One Piscina for all slots with a load balancer binds
 * tasks too, but starts replacements by itself, and stops starting them for every slot once one
 * failed while booting.)
 */
export function createPiscinaTransport(options: PiscinaTransportOptions): CreateTransport {
  return (slot) => new PiscinaTransport(slot, options);
}

class PiscinaTransport implements SlotTransport {
  readonly #slot: number;
  readonly #options: PiscinaTransportOptions;
  readonly #underEvaluation = new Float64Array(new SharedArrayBuffer(8));
  #pool: Piscina<WorkerTask<MessagePort, WorkerSettings>, WorkerTaskReply> | null = null;
  #port: MessagePort | null = null;
  #isStopped = false;

  constructor(slot: number, options: PiscinaTransportOptions) {
    this.#slot = slot;
    this.#options = options;
  }

  async start(events: SlotEvents): Promise<void> {
    const { filename, oldGenerationMbMax } = this.#options;
    const pool = new Piscina<WorkerTask<MessagePort, WorkerSettings>, WorkerTaskReply>({
      filename: filename ?? new URL('./decision-worker.ts', import.meta.url).href,
      minThreads: 1,
      maxThreads: 1,
      concurrentTasksPerWorker: BATCHES_AND_HELLO,
      idleTimeout: Infinity,
      // 'sync' would freeze the worker's event loop between tasks: no load, no deferred answer.
      atomics: 'disabled',
      recordTiming: false,
      ...(oldGenerationMbMax === undefined
        ? {}
        : { resourceLimits: { maxOldGenerationSizeMb: oldGenerationMbMax } }),
    });
    this.#pool = pool;
    const onLost = (cause: unknown): void => {
      if (this.#isStopped) return;
      events.onLost(cause);
    };
    // Emitted for every way in which a thread ends, also without a task; before Piscina starts
    // another one, which stop() then prevents.
    // The tasks it held reject with the cause just after; without one there is only this.
    pool.on('workerDestroy', () => {
      pool.destroy().catch(onLost);
      setImmediate(() => onLost(new Error('the worker thread ended')));
    });
    pool.on('error', onLost);
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    port1.on('message', (answers: AnswerBatch) => {
      if (!this.#isStopped) events.onAnswers(answers);
    });
    const reply = await pool.run(
      {
        kind: 'hello',
        hello: {
          protocolVersion: PROTOCOL_VERSION,
          port: port2,
          underEvaluation: this.#underEvaluation.buffer,
          settings: this.#options.settings(this.#slot),
        },
      },
      { transferList: [port2] },
    );
    if (reply.kind !== 'hello' || reply.hello.protocolVersion !== PROTOCOL_VERSION) {
      throw new Error('the worker speaks another protocol version');
    }
  }

  async send(batch: RequestBatch): Promise<AnswerBatch> {
    const pool = this.#pool;
    if (pool === null || this.#isStopped) throw new Error('the worker has been stopped');
    const transferList = batch.bodies.byteLength === 0 ? [] : [batch.bodies.buffer as ArrayBuffer];
    const reply = await pool.run({ kind: 'batch', batch }, { transferList });
    if (reply.kind !== 'batch') throw new Error('the worker answered a batch with a greeting');
    return reply.answers;
  }

  underEvaluation(): number {
    return this.#underEvaluation[0] as number; // length 1
  }

  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#port?.close();
    await this.#pool?.destroy();
  }
}
