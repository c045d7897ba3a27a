import type { AnswerBatch } from '../../protocol/messages.ts';
import type { Clock } from '../../shared/time/clock.ts';
import { RestartPace } from './restart-pace.ts';
import type { CreateTransport, SlotTransport } from './slot-transport.ts';

/** Callbacks for changes in the life of a slot's workers. */
export type WorkerLifeEvents = {
  readonly onAnswers: (answers: AnswerBatch) => void;
  readonly onReady: () => void;
  /** `requestId` was under evaluation when the worker went; 0: none. */
  readonly onLost: (cause: unknown, requestId: number) => void;
  /** A lost worker could not be stopped. */
  readonly onStopFailed: (error: unknown) => void;
  /** No worker can be started; there are no more attempts. */
  readonly onFailed: () => void;
  /** Called after `onFailed`, once all that waited for the start have been rejected. */
  readonly onFatal: (cause: unknown) => void;
};

type WorkerState = 'idle' | 'starting' | 'ready' | 'waiting to restart' | 'failed' | 'stopped';

/** Keeps one worker at a time alive: starts it, and after a loss the next one, until none can be started or it is ended. */
export class WorkerLife {
  readonly #createTransport: () => SlotTransport;
  readonly #events: WorkerLifeEvents;
  readonly #clock: Clock;
  readonly #restarts = new RestartPace();
  #state: WorkerState = 'idle';
  #transport: SlotTransport | null = null;
  #started: { resolve(): void; reject(error: unknown): void } | null = null;

  constructor(
    slot: number,
    createTransport: CreateTransport,
    events: WorkerLifeEvents,
    clock: Clock,
  ) {
    this.#createTransport = () => createTransport(slot);
    this.#events = events;
    this.#clock = clock;
  }

  get state(): WorkerState {
    return this.#state;
  }

  get isReady(): boolean {
    return this.#state === 'ready';
  }

  /** Port to the present worker; null if none. */
  get transport(): SlotTransport | null {
    return this.#transport;
  }

  /** Starts the first worker. Errors: rejects when the first bootstraps failed. */
  start(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#started = { resolve, reject };
    this.#launch();
    return promise;
  }

  /** The present worker, reached by `transport`, is lost: the next one is started after a while. */
  lost(transport: SlotTransport, cause: unknown): void {
    const wasReady = this.#state === 'ready';
    const requestId = transport.underEvaluation();
    this.#transport = null;
    transport.stop().catch((error: unknown) => this.#events.onStopFailed(error));
    this.#events.onLost(cause, wasReady ? requestId : 0);
    const delayMs = this.#restarts.lost(wasReady, this.#clock.monotonicMs());
    if (delayMs === undefined) return this.#becomeFailed(cause);
    this.#state = 'waiting to restart';
    setTimeout(() => {
      if (this.#state === 'waiting to restart') this.#launch();
    }, delayMs);
  }

  /** No worker is started any more. Returns what is to be stopped; null: nothing. */
  retire(): SlotTransport | null {
    const transport = this.#transport;
    this.#transport = null;
    this.#state = 'stopped';
    return transport;
  }

  #launch(): void {
    const transport = this.#createTransport();
    this.#transport = transport;
    this.#state = 'starting';
    let isLost = false;
    const onLost = (cause: unknown): void => {
      if (isLost || this.#transport !== transport) return;
      isLost = true;
      this.lost(transport, cause);
    };
    const onAnswers = (answers: AnswerBatch): void => {
      if (this.#transport === transport) this.#events.onAnswers(answers);
    };
    transport.start({ onAnswers, onLost }).then(
      () => {
        if (this.#transport !== transport) return;
        this.#state = 'ready';
        this.#restarts.ready(this.#clock.monotonicMs());
        this.#started?.resolve();
        this.#started = null;
        this.#events.onReady();
      },
      (cause: unknown) => onLost(cause),
    );
  }

  #becomeFailed(cause: unknown): void {
    this.#state = 'failed';
    this.#events.onFailed();
    this.#started?.reject(cause);
    this.#started = null;
    this.#events.onFatal(cause);
  }
}
