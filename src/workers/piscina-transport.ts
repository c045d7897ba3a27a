import { MessageChannel } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { Piscina } from 'piscina';
import type {
  AnswerBatch,
  HelloMessage,
  HelloReply,
  RequestBatch,
  WorkerMessage,
  WorkerReply,
} from '../protocol/messages.ts';
import { PROTOCOL_VERSION } from '../protocol/messages.ts';
import { RequestPacker, transferOf, unpackAnswers } from '../protocol/packed-batch.ts';
import type { CreateTransport, SlotEvents, SlotTransport } from './slot-transport.ts';
import type { WorkerSettings } from './worker-settings.ts';

export type PiscinaTransportOptions = {
  readonly settings: (slot: number) => WorkerSettings;
  /** Replaces the worker's module; for tests. */
  readonly filename?: string | undefined;
  /** Heap limits of a worker, MiB. */
  readonly oldGenerationMbMax?: number | undefined;
};

type Waiter = { resolve(answers: AnswerBatch): void; reject(error: unknown): void };

/** Numbers of batches are 32 bits on the wire; far more than are ever open. */
const BATCH_NUMBER_MAX = 2 ** 32 - 1;

/**
 * Workers on threads: one single-thread Piscina per life of a slot, so that a slot is one worker
 * and a lost worker is told from a busy one. (One Piscina for all slots with a load balancer binds
 * tasks too, but starts replacements by itself, and stops starting them for every slot once one
 * failed while booting.) Piscina starts, limits and watches the thread, and takes the greeting;
 * batches then go through a port of our own, since a task of Piscina for each costs 30 µs more.
 */
export function createPiscinaTransport(options: PiscinaTransportOptions): CreateTransport {
  return (slot) => new PiscinaTransport(slot, options);
}

class PiscinaTransport implements SlotTransport {
  readonly #slot: number;
  readonly #options: PiscinaTransportOptions;
  readonly #underEvaluation = new Float64Array(new SharedArrayBuffer(8));
  #pool: Piscina<HelloMessage<MessagePort, WorkerSettings>, HelloReply> | null = null;
  #port: MessagePort | null = null;
  readonly #packer = new RequestPacker();
  readonly #waiters = new Map<number, Waiter>();
  #batch = 0;
  #isStopped = false;

  constructor(slot: number, options: PiscinaTransportOptions) {
    this.#slot = slot;
    this.#options = options;
  }

  async start(events: SlotEvents): Promise<void> {
    const { filename, oldGenerationMbMax } = this.#options;
    const pool = new Piscina<HelloMessage<MessagePort, WorkerSettings>, HelloReply>({
      filename: filename ?? new URL('./decision-worker.ts', import.meta.url).href,
      minThreads: 1,
      maxThreads: 1,
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
    port1.on('message', (reply: WorkerReply) => {
      if (this.#isStopped) return;
      const { batch, content } = reply instanceof ArrayBuffer ? unpackAnswers(reply) : reply;
      if (batch === 0) return events.onAnswers(content);
      const waiter = this.#waiters.get(batch);
      this.#waiters.delete(batch);
      waiter?.resolve(content);
    });
    const reply = await pool.run(
      {
        protocolVersion: PROTOCOL_VERSION,
        port: port2,
        underEvaluation: this.#underEvaluation.buffer,
        settings: this.#options.settings(this.#slot),
      },
      { transferList: [port2] },
    );
    if (reply.protocolVersion !== PROTOCOL_VERSION) {
      throw new Error('the worker speaks another protocol version');
    }
  }

  send(content: RequestBatch): Promise<AnswerBatch> {
    const port = this.#port;
    if (port === null || this.#isStopped) {
      return Promise.reject(new Error('the worker has been stopped'));
    }
    this.#batch = this.#batch === BATCH_NUMBER_MAX ? 1 : this.#batch + 1;
    const batch = this.#batch;
    const packed = this.#packer.pack(batch, content);
    if (packed === null) {
      const message: WorkerMessage = { batch, content };
      const { bodies } = content;
      port.postMessage(message, bodies.byteLength === 0 ? [] : [bodies.buffer as ArrayBuffer]);
    } else port.postMessage(packed, transferOf(packed));
    return new Promise((resolve, reject) => {
      this.#waiters.set(batch, { resolve, reject });
    });
  }

  underEvaluation(): number {
    return this.#underEvaluation[0] as number; // length 1
  }

  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#port?.close();
    for (const waiter of this.#waiters.values()) waiter.reject(new Error('the worker was ended'));
    this.#waiters.clear();
    await this.#pool?.destroy();
  }
}
