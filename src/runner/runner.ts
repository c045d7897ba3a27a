import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { BodyBudget } from '../http/bodies/body-budget.ts';
import { plainTextWarning } from '../http/host-allow-list.ts';
import { createHttpServer, type HttpServer } from '../http/listener/http-server.ts';
import { registerBodyMetrics } from '../observability/body-metrics.ts';
import { createIncidentLog } from '../observability/incident-log.ts';
import { eventLogOf, type Logger } from '../observability/logger.ts';
import { METRICS_CONTENT_TYPE } from '../observability/metric-store.ts';
import { AppError } from '../shared/app-error.ts';
import { assert } from '../shared/assert.ts';
import type { Clock } from '../shared/time/clock.ts';
import { Access } from './api/access.ts';
import { serveApi, type ApiOptions } from './api/api-server.ts';
import { EVENTS_PATH } from './api/event-routes.ts';
import type { ApiRoute } from './api/router.ts';
import { INBOX_PATH } from './api/sync-routes.ts';
import { RUNNER_OPTIONS, type RunnerSettings } from './settings/settings.ts';
import { apiTokenPath } from './storage/api-token-file.ts';
import { removeEndpoint, STATE_DIR, writeEndpoint } from './storage/endpoint-file.ts';
import { routesOf } from './wiring/runner-routes.ts';
import { startParts, type RunnerWiring } from './wiring/runner-wiring.ts';

export type RunnerOptions = {
  readonly logger: Logger;
  readonly version: string;
  readonly clock: Clock;
  /** The process environment: what steps inherit of it, and secrets of the `env` backend. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Milliseconds between two pings, for tests; 30 s. */
  readonly pingMs?: number | undefined;
  /** Whether what the first job needs is started beside the rest; else when it comes. */
  readonly isEager?: boolean | undefined;
};

/** A runner that serves. */
export interface Runner {
  readonly port: number;
  /** Of the separate inbox and of /metrics, when they are on. */
  readonly inboxPort: number | undefined;
  readonly metricsPort: number | undefined;
  readonly parts: RunnerWiring;
  /**
   * Takes no new runs, cancels those in progress and waits for them, completes the streams, closes.
   * Queued runs go on after the next start. Idempotent.
   */
  stop(): Promise<void>;
}

/** `localhost` is both loopback addresses, as clients may try either. */
const LOOPBACKS = ['127.0.0.1', '::1'];
/** Characters of a path in a line of the log that a page can cause. */
const PATH_SHOWN = 200;
/** Answers that are on their way when everything else has stopped. */
const ANSWERS_MS = 1_000;

/**
 * Opens the workspace, recovers its runs and listens.
 * Errors: STORE_UNAVAILABLE when another runner has the workspace, CONFIG_INVALID when it is no folder,
 * INTERNAL or the system's error for a port that cannot be had.
 */
export async function createRunner(
  settings: RunnerSettings,
  options: RunnerOptions,
): Promise<Runner> {
  const workspace = await mustFolder(settings.workspace);
  const parts = await startParts(settings, { ...options, workspace });
  const servers: HttpServer[] = [];
  try {
    const runner = new ServingRunner(settings, options, parts, servers);
    await runner.listen();
    return runner;
  } catch (error) {
    for (const server of servers) await server.stop(0);
    await parts.stop();
    throw error;
  }
}

async function mustFolder(path: string): Promise<string> {
  const absolute = resolve(path);
  const isFolder = await stat(absolute).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  if (!isFolder) {
    throw new AppError('CONFIG_INVALID', `RUNNER_WORKSPACE: ${absolute} is not a folder`);
  }
  return absolute;
}

class ServingRunner implements Runner {
  readonly parts: RunnerWiring;
  readonly #settings: RunnerSettings;
  readonly #options: RunnerOptions;
  readonly #servers: HttpServer[];
  readonly #bodyBudget: BodyBudget;
  #port = 0;
  #inboxPort: number | undefined;
  #metricsPort: number | undefined;
  #stopping: Promise<void> | undefined;

  constructor(
    settings: RunnerSettings,
    options: RunnerOptions,
    parts: RunnerWiring,
    servers: HttpServer[],
  ) {
    this.#settings = settings;
    this.#options = options;
    this.parts = parts;
    this.#servers = servers;
    const { bodyMemoryBytes: bytesMax } = settings;
    // Webhooks prove by their bodies who sends them.
    this.#bodyBudget = new BodyBudget({ bytesMax, unauthenticatedBytesMax: bytesMax / 2 });
    if (parts.metrics !== undefined) {
      registerBodyMetrics(parts.metrics.store, 'runner', this.#bodyBudget);
    }
  }

  get port(): number {
    return this.#port;
  }

  get inboxPort(): number | undefined {
    return this.#inboxPort;
  }

  get metricsPort(): number | undefined {
    return this.#metricsPort;
  }

  async listen(): Promise<void> {
    const settings = this.#settings;
    this.#warn();
    const isStopping = (): boolean => this.#stopping !== undefined;
    const { inbox, routes } = routesOf(this.parts, isStopping, settings.apiToken !== undefined);
    const api = this.#apiOptions([...routes, inbox]);
    const isBoth = settings.host.toLowerCase() === 'localhost';
    const [first = settings.host, second] = isBoth ? LOOPBACKS : [settings.host];
    this.#port = await this.#serve(first, settings.port, api, () => this.#port);
    if (second !== undefined) await this.#serveSecond(second, api);
    await writeEndpoint(this.#stateDir, settings.host, this.#port);
    if (settings.inboxPort !== undefined) {
      const inboxApi = this.#apiOptions([inbox]);
      this.#inboxPort = await this.#serve(
        first,
        settings.inboxPort,
        inboxApi,
        () => this.#inboxPort ?? 0,
      );
    }
    if (settings.metricsPort !== undefined) {
      this.#metricsPort = await this.#serveMetrics(first, settings.metricsPort);
    }
  }

  /** Of settings that leave the door open further than an operator may think. */
  #warn(): void {
    const { apiToken, allowedOrigins } = this.#settings;
    const { logger } = this.#options;
    if (apiToken === undefined) {
      const detail =
        'every program of this machine can run commands; pages of other origins need the token of this file';
      logger.warn({ detail, token_file: apiTokenPath(this.#stateDir) }, 'api_token_unset');
    }
    if (allowedOrigins.includes('*')) {
      const detail = 'every web page can run commands; narrow RUNNER_ALLOWED_ORIGINS';
      logger.warn({ detail }, 'every_origin_allowed');
    }
    const warning = plainTextWarning({
      ...this.#settings,
      hostSetting: RUNNER_OPTIONS.host.env,
      proxySetting: RUNNER_OPTIONS.isBehindProxy.env,
    });
    if (warning !== undefined) logger.warn(warning, 'listens_without_tls');
  }

  get #stateDir(): string {
    return join(this.parts.workspace, STATE_DIR);
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  /** Streams see the end of their runs; then they are completed, and the listeners closed. */
  async #stop(): Promise<void> {
    const { parts } = this;
    parts.schedule?.stop();
    // At once: whoever was notified that the runner stops must find that nothing begins any more.
    await Promise.all([parts.runs.shutdown(), removeEndpoint(this.#stateDir)]);
    parts.hub.close();
    await Promise.all(this.#servers.map((server) => server.stop(ANSWERS_MS)));
    await parts.stop();
  }

  #apiOptions(routes: readonly ApiRoute[]): ApiOptions {
    const { logger, clock } = this.#options;
    const requests = logger.child({});
    // Pages cause these at will.
    const refused = createIncidentLog(eventLogOf(logger), clock);
    return {
      routes,
      access: new Access(this.#settings, this.parts),
      openPaths: new Set([INBOX_PATH]),
      queryTokenPaths: new Set([EVENTS_PATH]),
      maxBodyBytes: this.#settings.maxBodyBytes,
      onFault: (error, requestId) => {
        logger.error({ error, request_id: requestId }, 'request_failed');
      },
      onRequest: ({ requestId, method, path, actor, durationMs, failure }) => {
        if (failure === 'origin_needs_token') {
          refused(
            'foreign_page_refused',
            `${method} ${path.slice(0, PATH_SHOWN)} from ${actor.origin || 'another site'}`,
          );
        }
        const fields = { request_id: requestId, method, path, duration_ms: durationMs };
        requests.debug(failure === '' ? fields : { ...fields, code: failure }, 'request');
      },
    };
  }

  async #serve(
    host: string,
    port: number,
    api: ApiOptions,
    ownPort: () => number,
  ): Promise<number> {
    const server = this.#createServer(host, port);
    serveApi(server, api, ownPort);
    return (await server.listen()).port;
  }

  /** ::1 on the port of 127.0.0.1. A machine without IPv6, or a taken port there, is reported and no failure. */
  async #serveSecond(host: string, api: ApiOptions): Promise<void> {
    try {
      await this.#serve(host, this.#port, api, () => this.#port);
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      this.#options.logger.warn({ host, error: text }, 'second_address_unavailable');
    }
  }

  /** A scrape needs no token, but must name this service as any other request. */
  async #serveMetrics(host: string, port: number): Promise<number> {
    const { metrics } = this.parts;
    assert(metrics !== undefined, 'a runner that serves counts');
    const route: ApiRoute = {
      method: 'GET',
      pattern: '/metrics',
      handle: async () => ({
        kind: 'whole',
        status: 200,
        contentType: METRICS_CONTENT_TYPE,
        body: await metrics.store.render(),
        headers: [],
      }),
    };
    return this.#serve(host, port, this.#apiOptions([route]), () => this.#metricsPort ?? 0);
  }

  #createServer(host: string, port: number): HttpServer {
    const { logger, clock } = this.#options;
    const server = createHttpServer({
      host,
      port,
      bodyBudget: this.#bodyBudget,
      http1: this.#settings.http1Parser,
      limits: { http1IdleMs: this.#settings.httpIdleMs },
      onIncident: createIncidentLog(eventLogOf(logger), clock),
    });
    this.#servers.push(server);
    return server;
  }
}
