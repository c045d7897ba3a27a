import type { EventLoopUtilization } from 'node:perf_hooks';
import { MessageChannel } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { BatchMemory, handedBufferOf, handedSpace } from '../../protocol/batch-memory.ts';
import type { BatchSpace } from '../../protocol/batch-memory.ts';
import { BatchTimes } from '../../protocol/batch-times.ts';
import type {
  AnswerBatch,
  HelloMessage,
  HelloReply,
  RequestBatch,
  WorkerMessage,
  WorkerReply,
} from '../../protocol/messages.ts';
import { PROTOCOL_VERSION } from '../../protocol/messages.ts';
import { RequestPacker, transferOf, unpackAnswers } from '../../protocol/packed-batch.ts';
import type { WorkerSettings } from '../host/worker-settings.ts';
import type { CreateTransport, SlotEvents, SlotTransport } from './slot-transport.ts';

export type PiscinaTransportOptions = {
  /** Asked for while the thread is already loading its modules. */
  readonly settings: (slot: number) => WorkerSettings | Promise<WorkerSettings>;
  /** Replaces the worker's module; for tests. */
  readonly filename?: string | undefined;
};

/** `memory` is the shared buffer that the batch is in, or -1. */
type Waiter = {
  readonly batch: number;
  readonly memory: number;
  resolve(answers: AnswerBatch): void;
  reject(error: unknown): void;
};

/**
 * Average length above which bodies are not shared: some outlive the reply, and would be copied again out of shared
 * memory.
 */
const SHARED_BODY_BYTES_MAX = 16 * 1024;
/** Numbers of batches are 32 bits on the wire; far more than are ever open. */
const BATCH_NUMBER_MAX = 2 ** 32 - 1;

/**
 * Workers on threads: one single-thread Piscina per life of a slot, so that a slot is one worker
 * and a lost worker is distinguished from a busy one. (One Piscina for all slots with a load balancer binds
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
  readonly #memory = new BatchMemory();
  /** Buffers of `#memory` that the worker knows. */
  #memoriesKnown = 0;
  /** Waiters of batches in flight, which are few; no Map, for the reason in SentRequests. */
  readonly #waiters: Waiter[] = [];
  #batch = 0;
  /** The stages that are measured; null: none are. */
  #times: BatchTimes | null = null;
  #isStopped = false;
  #utilization: EventLoopUtilization | undefined;

  constructor(slot: number, options: PiscinaTransportOptions) {
    this.#slot = slot;
    this.#options = options;
  }

  async start(events: SlotEvents): Promise<void> {
    const { filename } = this.#options;
    const pool = new Piscina<HelloMessage<MessagePort, WorkerSettings>, HelloReply>({
      filename: filename ?? new URL('../host/decision-worker.ts', import.meta.url).href,
      minThreads: 1,
      maxThreads: 1,
      idleTimeout: Infinity,
      // 'sync' would freeze the worker's event loop between tasks: no load, no deferred answer.
      atomics: 'disabled',
      recordTiming: false,
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
      this.#times?.returned(batch);
      const waiter = this.#takeWaiter(batch);
      if (waiter === undefined) return;
      if (waiter.memory >= 0) this.#memory.release(waiter.memory);
      waiter.resolve(content);
    });
    const settings = await this.#options.settings(this.#slot);
    const { timesMemory } = settings;
    if (timesMemory !== undefined) this.#times = new BatchTimes(timesMemory);
    const reply = await pool.run(
      {
        protocolVersion: PROTOCOL_VERSION,
        port: port2,
        underEvaluation: this.#underEvaluation.buffer,
        settings,
      },
      { transferList: [port2] },
    );
    if (reply.protocolVersion !== PROTOCOL_VERSION) {
      throw new Error('the worker speaks another protocol version');
    }
  }

  space(requests: number, bodyBytes: number): BatchSpace {
    const isShared = bodyBytes <= requests * SHARED_BODY_BYTES_MAX;
    const shared = isShared ? this.#memory.acquire(requests, bodyBytes) : null;
    return shared ?? handedSpace(requests, bodyBytes);
  }

  send(content: RequestBatch): Promise<AnswerBatch> {
    const port = this.#port;
    if (port === null || this.#isStopped) {
      return Promise.reject(new Error('the worker has been stopped'));
    }
    this.#batch = this.#batch === BATCH_NUMBER_MAX ? 1 : this.#batch + 1;
    const batch = this.#batch;
    this.#times?.sending(batch);
    let memory = this.#memory.indexOf(content);
    if (memory >= 0 && !this.#packer.packInPlace(batch, content, this.#memory.buffer(memory))) {
      this.#postCopy(port, batch, content);
      this.#memory.release(memory);
      memory = -1;
    } else if (memory >= 0) this.#postMemory(port, memory);
    else this.#postCopy(port, batch, content);
    return new Promise((resolve, reject) => {
      this.#waiters.push({ batch, memory, resolve, reject });
    });
  }

  #takeWaiter(batch: number): Waiter | undefined {
    const waiters = this.#waiters;
    const at = waiters.findIndex((waiter) => waiter.batch === batch);
    if (at < 0) return undefined;
    const waiter = waiters[at];
    const last = waiters.pop();
    if (last !== undefined && at < waiters.length) waiters[at] = last;
    return waiter;
  }

  #postMemory(port: MessagePort, memory: number): void {
    // They are taken into use in order.
    if (memory >= this.#memoriesKnown) {
      const emitted: WorkerMessage = { memory, buffer: this.#memory.buffer(memory) };
      port.postMessage(emitted);
      this.#memoriesKnown = memory + 1;
    }
    port.postMessage(memory satisfies WorkerMessage);
  }

  #postCopy(port: MessagePort, batch: number, content: RequestBatch): void {
    const handed = handedBufferOf(content);
    const isPacked = handed !== null && this.#packer.packInPlace(batch, content, handed);
    const packed = isPacked ? handed : this.#packer.pack(batch, content);
    if (packed !== null) {
      port.postMessage(packed, transferOf(packed));
      return;
    }
    const message: WorkerMessage = { batch, content };
    const { bodies } = content;
    port.postMessage(message, bodies.byteLength === 0 ? [] : [bodies.buffer as ArrayBuffer]);
  }

  underEvaluation(): number {
    return this.#underEvaluation[0] as number; // length 1
  }

  utilization(): number {
    const thread = this.#pool?.threads[0];
    if (thread === undefined) return 0;
    const before = this.#utilization;
    const now = thread.performance.eventLoopUtilization();
    this.#utilization = now;
    // Without a second reading there is no time in between, and the quotient is no number.
    if (before === undefined) return 0;
    return thread.performance.eventLoopUtilization(now, before).utilization;
  }

  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#port?.close();
    const waiters = this.#waiters.splice(0);
    for (const waiter of waiters) waiter.reject(new Error('the worker was ended'));
    await this.#pool?.destroy();
  }
}
