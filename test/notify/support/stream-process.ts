import { createHttpServer } from '../../../src/http/listener/http-server.ts';
import { addClientRoutes } from '../../../src/notify/api/client-routes.ts';
import { createNotifyLog } from '../../../src/notify/core/event-log.ts';
import { createRefusals } from '../../../src/notify/core/refusals.ts';
import { FairGate } from '../../../src/notify/core/round-robin-queue.ts';
import { DelayedHints } from '../../../src/notify/live/delayed-hints.ts';
import { LiveHub } from '../../../src/notify/live/live-hub.ts';
import { StreamGate } from '../../../src/notify/live/stream-gate.ts';
import { StreamTokens } from '../../../src/notify/live/stream-token.ts';
import type { NotificationStore } from '../../../src/notify/model/notification-store.ts';
import { createNotifyMetrics } from '../../../src/notify/service/metrics.ts';
import { createLogger } from '../../../src/observability/logger.ts';
import { AppError } from '../../../src/shared/app-error.ts';
import { IdSource } from '../../../src/shared/ids.ts';
import { silentReport } from '../../../src/shared/loop-report.ts';
import { systemClock } from '../../../src/shared/time/clock.ts';
import { EventClient } from '../../support/event-client.ts';

/** What chance decides about the store: how long each read takes, and whether it fails. */
type Chance = { readonly delaysMs: readonly number[]; readonly fails: readonly boolean[] };

/** `store` with reads that take their time and sometimes fail; `figures` counts them and the failed ones. */
function unreliable(store: NotificationStore, { delaysMs, fails }: Chance) {
  let index = 0;
  const figures = { failures: 0, bounds: 0, pages: 0 };
  const slowly = async <T>(read: () => Promise<T>): Promise<T> => {
    const turn = index++;
    // Before as well as after: an answer may be old news when it comes.
    await pause(delaysMs[turn % delaysMs.length] ?? 0);
    if (fails[turn % fails.length] === true) {
      figures.failures += 1;
      throw new AppError('STORE_UNAVAILABLE', 'the database is not available');
    }
    const value = await read();
    await pause(delaysMs[(turn + 1) % delaysMs.length] ?? 0);
    return value;
  };
  const reads: Pick<NotificationStore, 'bounds' | 'liveAfter' | 'readsAfter'> = {
    bounds: (user) => {
      figures.bounds += 1;
      return slowly(() => store.bounds(user));
    },
    readsAfter: (...given) => slowly(() => store.readsAfter(...given)),
    liveAfter: (user, sequence, limit) => {
      figures.pages += 1;
      return slowly(() => store.liveAfter(user, sequence, limit));
    },
  };
  return { reads, figures };
}

export const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, ms));

/** One process' part for streams, on a store that it shares; pages and buffers of eight. */
export async function startProcess(store: NotificationStore, chance: Chance) {
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger('info', {
    write: (text: string) => void lines.push(JSON.parse(text) as Record<string, unknown>),
  });
  const log = createNotifyLog(logger);
  const metrics = createNotifyMetrics('1', 'test');
  const { reads, figures } = unreliable(store, chance);
  const gate = new FairGate(4);
  const hub = new LiveHub({
    store: reads,
    metrics,
    log,
    gate,
    clock: systemClock,
    connectionsMax: 100,
    connectionsPerUserMax: 100,
    heartbeatMs: 600_000,
    bufferEventsMax: 8,
  });
  const streamGate = new StreamGate({
    store,
    hub,
    gate,
    pollMs: 60_000,
    revision: 0,
    report: silentReport,
  });
  const hints = new DelayedHints(1, (...hint) => hub.hint(...hint));
  const server = createHttpServer({ host: '127.0.0.1', port: 0 });
  const tokens = new StreamTokens('a secret of the test');
  addClientRoutes({
    server,
    hub,
    gate: streamGate,
    tokens,
    clock: systemClock,
    ids: new IdSource(systemClock),
    metrics,
    log,
    refusals: createRefusals(logger, metrics, systemClock),
    allowedOrigins: ['*'],
    bufferEventsMax: 8,
    isLive: true,
    isClosing: () => false,
  });
  const { port } = await server.listen();
  const urlOf = (userId: string): string => {
    const grant = { tenantId: 'acme', userId, deviceType: 'web' as const };
    const token = tokens.create({
      ...grant,
      expiresAtMs: systemClock.nowMs() + 600_000,
      issuedAtMs: systemClock.nowMs(),
      tokenId: 'token',
    });
    return `http://127.0.0.1:${port}/v1/stream?access_token=${token}`;
  };
  const stop = async (): Promise<void> => {
    streamGate.close();
    hub.close();
    hints.close();
    await server.stop(1_000);
  };
  return { hub, hints, lines, figures, urlOf, stop };
}

export type Process = Awaited<ReturnType<typeof startProcess>>;

/** A device that reconnects with the last id it saw, to whichever process. */
export class Device {
  readonly userId: string;
  readonly came: number[] = [];
  start: number | undefined;
  #lastId = '';
  /** As the last event said that counts. */
  #count = { unread_count: Number.NaN, head: 0, reads: 0 };
  #client: EventClient | undefined;
  #seen = 0;

  /** `lastSequence`: the last that it saw in an earlier life. */
  constructor(userId: string, lastSequence?: number) {
    this.userId = userId;
    if (lastSequence !== undefined) this.#lastId = String(lastSequence);
  }

  async connect(process: Process): Promise<void> {
    this.disconnect();
    const headers: Record<string, string> =
      this.#lastId === '' ? {} : { 'last-event-id': this.#lastId };
    this.#client = await EventClient.open(process.urlOf(this.userId), headers);
    this.#seen = 0;
  }

  disconnect(): void {
    this.look();
    this.#client?.close();
    this.#client = undefined;
  }

  hasBegun(): boolean {
    this.look();
    return this.start !== undefined;
  }

  /** What it shows: the last count, and what came that was not in it. */
  badge(): { readonly unreadCount: number; readonly reads: number } {
    const { unread_count: counted, head, reads } = this.#count;
    const later = this.look().filter((sequence) => sequence > head);
    return { unreadCount: counted + later.length, reads };
  }

  /** Errors: throws for a mark that is not the next one, or that is about what has not come. */
  #takeCount(event: string, data: Record<string, unknown>): void {
    const count = data as { unread_count: number; head: number; reads: number };
    if (event === 'read') {
      if (count.reads !== this.#count.reads + 1) throw new Error('not the next mark');
      if (Number(data['up_to_sequence']) > count.head) throw new Error('a mark of what is to come');
    }
    this.#count = count;
  }

  /** Takes over what has come. */
  look(): readonly number[] {
    const events = this.#client?.events ?? [];
    for (; this.#seen < events.length; this.#seen++) {
      const { id, event, data } = events[this.#seen] as (typeof events)[number];
      if (id !== '') this.#lastId = id;
      if (event === 'open' || event === 'read') this.#takeCount(event, data);
      if (event === 'open') this.start ??= Number(id);
      else if (event === 'read') continue;
      else this.came.push(event === 'notification' ? Number(id) : Number.NaN);
    }
    return this.came;
  }
}
