import { setTimeout as delay } from 'node:timers/promises';
import type { Config } from '../../config/options.ts';
import { type HeldSocket, holdSockets } from '../../http/listener/held-sockets.ts';
import type { AuthzReason } from '../../model/reasons.ts';
import type { EventLog } from '../../observability/logger.ts';
import { AppError } from '../../shared/app-error.ts';
import { connectionsOf } from '../database/database.ts';
import { type SharedDatabase, shareDatabase } from '../database/shared-database.ts';
import { SupervisedProcess } from './supervised-process.ts';

export type SupervisorOptions = {
  /** Processes. */
  readonly count: number;
  /** Settings of one of them. */
  readonly config: Config;
  /** Settings that all of them have beside the environment of this process. */
  readonly env: Readonly<Record<string, string>>;
  readonly log: EventLog;
};

/** Pauses before an instance that ended is started again. */
const RESTART_MS_FIRST = 200;
const RESTART_MS_MAX = 10_000;
/** An instance that ran longer restarts at once. */
const STABLE_MS = 30_000;

type InstanceSlot = {
  readonly index: number;
  readonly socket: HeldSocket;
  readonly metrics: HeldSocket;
  process: SupervisedProcess;
  startedMs: number;
  pauseMs: number;
};

/**
 * Several instances on one machine and port: holds the listening sockets and, without DATABASE_URL,
 * PostgreSQL; starts one process for each slot, again when it ends, and replaces them one by one on
 * demand.
 */
export class InstanceSupervisor {
  readonly #options: SupervisorOptions;
  readonly #database: SharedDatabase;
  readonly #slots: InstanceSlot[] = [];
  readonly #sockets: readonly HeldSocket[];
  #isStopping = false;
  #replacing: Promise<void> = Promise.resolve();

  private constructor(
    options: SupervisorOptions,
    database: SharedDatabase,
    sockets: readonly HeldSocket[],
    metrics: readonly HeldSocket[],
  ) {
    this.#options = options;
    this.#database = database;
    this.#sockets = sockets;
    for (const [index, socket] of sockets.entries()) {
      const metricsSocket = metrics[index] as HeldSocket; // as many
      const slot = { index, socket, metrics: metricsSocket };
      this.#slots.push({ ...slot, ...this.#launch(slot), pauseMs: 0 });
    }
  }

  /**
   * Starts everything; resolves when every instance accepts. Errors: those of the database and the ports;
   * STORE_UNAVAILABLE when one instance ends before it is ready, after the others were ended too.
   */
  static async start(options: SupervisorOptions): Promise<InstanceSupervisor> {
    const { config, count, log } = options;
    // One more while they are replaced.
    const needed = connectionsOf(config) * (count + 1);
    const database = await shareDatabase(config, needed, log);
    const held: HeldSocket[] = [];
    try {
      const sockets = await holdSockets(config.host, config.connectPort, count);
      held.push(...sockets);
      const metrics: HeldSocket[] = [];
      for (let index = 0; index < count; index++) {
        const port = config.metricsPort === 0 ? 0 : config.metricsPort + index;
        metrics.push(...(await holdSockets(config.host, port, 1)));
        held.push(...metrics.slice(-1));
      }
      const supervisor = new InstanceSupervisor(options, database, sockets, metrics);
      await supervisor.#allReady();
      return supervisor;
    } catch (error) {
      for (const socket of held) socket.close();
      await database.stop();
      throw error;
    }
  }

  get port(): number {
    return this.#slots[0]?.socket.port ?? 0;
  }

  get metricsPorts(): readonly number[] {
    return this.#slots.map(({ metrics }) => metrics.port);
  }

  get pids(): readonly number[] {
    return this.#slots.map((slot) => slot.process.pid);
  }

  /** Replaces the instances one by one: the next one goes when the one before it is ready. */
  replaceAll(): Promise<void> {
    this.#replacing = this.#replacing.then(async () => {
      for (const slot of this.#slots) {
        if (this.#isStopping) return;
        await this.#replace(slot);
      }
      this.#options.log('info', 'instances_replaced', { count: this.#slots.length });
    });
    return this.#replacing;
  }

  /** SIGTERM to all at once, or to all again; resolves when everything has ended. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    // The instances cease to accept at these first.
    for (const { metrics } of this.#slots) metrics.letNobodyIn();
    for (const { process } of this.#slots) process.signal('SIGTERM');
    // When they cease to accept: who came later would wait for nobody, and be reset in the end.
    const closing = setTimeout(() => {
      for (const { socket } of this.#slots) socket.letNobodyIn();
    }, this.#options.config.drainMs);
    await Promise.all(this.#slots.map(({ process }) => process.ended));
    clearTimeout(closing);
    for (const { socket, metrics } of this.#slots) {
      socket.close();
      metrics.close();
    }
    await this.#database.stop();
  }

  /** Kills the instances: the stop signal came again. */
  force(): void {
    for (const { process } of this.#slots) process.signal('SIGKILL');
  }

  async #allReady(): Promise<void> {
    try {
      await Promise.all(this.#slots.map(({ process }) => process.ready));
    } catch (error) {
      this.#isStopping = true;
      for (const { process } of this.#slots) process.signal('SIGTERM');
      await Promise.all(this.#slots.map(({ process }) => process.ended));
      throw new AppError<AuthzReason>(
        'STORE_UNAVAILABLE',
        `${(error as Error).message} before it was ready; its own last line says why. All were stopped`,
        {},
        error,
      );
    }
    for (const slot of this.#slots) this.#watch(slot);
  }

  #launch(
    slot: Pick<InstanceSlot, 'index' | 'socket' | 'metrics'>,
  ): Pick<InstanceSlot, 'process' | 'startedMs'> {
    const others = this.#sockets.filter(({ fd }) => fd !== slot.socket.fd).map(({ fd }) => fd);
    const process = new SupervisedProcess({
      name: String(slot.index + 1),
      env: { ...this.#options.env, ...this.#database.env },
      sockets: [slot.socket.fd, ...others],
      metricsSocket: slot.metrics.fd,
    });
    return { process, startedMs: performance.now() };
  }

  /** Starts the process of a slot again when it ends without a request to stop. */
  #watch(slot: InstanceSlot): void {
    const { process, startedMs } = slot;
    void process.ended.then(async (how) => {
      if (this.#isStopping || slot.process !== process) return;
      const wasStable = performance.now() - startedMs > STABLE_MS;
      const pauseMs = wasStable ? 0 : Math.max(RESTART_MS_FIRST, slot.pauseMs * 2);
      slot.pauseMs = Math.min(RESTART_MS_MAX, pauseMs);
      this.#options.log('error', 'instance_ended', {
        process: process.name,
        ended_with: how,
        restart_ms: slot.pauseMs,
      });
      await delay(slot.pauseMs);
      if (this.#isStopping) return;
      Object.assign(slot, this.#launch(slot));
      this.#watch(slot);
    });
  }

  /** Keeps the old process where the new one does not become ready. */
  async #replace(slot: InstanceSlot): Promise<void> {
    const old = slot.process;
    const next = this.#launch(slot);
    try {
      await next.process.ready;
    } catch (error) {
      this.#options.log('error', 'instance_not_replaced', {
        process: old.name,
        error: String(error),
      });
      return;
    }
    if (this.#isStopping) {
      // Stopping has not seen it.
      next.process.signal('SIGTERM');
      await next.process.ended;
      return;
    }
    Object.assign(slot, next, { pauseMs: 0 });
    this.#watch(slot);
    old.signal('SIGTERM');
    await old.ended;
    this.#options.log('info', 'instance_replaced', { process: old.name });
  }
}
