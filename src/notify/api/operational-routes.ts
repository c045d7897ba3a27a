import type { HttpExchange } from '../../http/exchange/http-exchange.ts';
import type { HttpServer } from '../../http/listener/http-server.ts';
import { METRICS_CONTENT_TYPE } from '../../observability/metric-store.ts';

const JSON_TYPE = 'application/json';
const NO_STORE = ['cache-control', 'no-store'];

export type OperationalOptions = {
  readonly server: HttpServer;
  /** All listeners are bound, and shutdown has not begun. */
  readonly isReady: () => boolean;
  /** The loops in the background that fail. */
  readonly failingLoops: () => readonly string[];
  /** Never rejects. */
  readonly renderMetrics: () => Promise<string>;
};

/**
 * The metrics port: /healthz and its alias /health for liveness and readiness as the contract has it, /readyz, which also
 * names the loops in the background that fail, /livez, which stays 200 while the process drains, and /metrics.
 */
export function addOperationalRoutes({
  server,
  isReady,
  failingLoops,
  renderMetrics,
}: OperationalOptions): void {
  for (const path of ['/healthz', '/health']) {
    const answer = (exchange: HttpExchange): void => {
      if (isReady()) exchange.send(200, JSON_TYPE, '{"status":"ok"}', NO_STORE);
      else exchange.send(503, JSON_TYPE, '{"status":"not_ready"}', NO_STORE);
    };
    server.route('GET', path, answer, false);
  }
  server.route(
    'GET',
    '/readyz',
    (exchange) => {
      if (!isReady()) return exchange.send(503, JSON_TYPE, '{"status":"unavailable"}', NO_STORE);
      const body = JSON.stringify({ status: 'ready', degraded: failingLoops() });
      exchange.send(200, JSON_TYPE, body, NO_STORE);
    },
    false,
  );
  const alive = (exchange: HttpExchange): void =>
    exchange.send(200, JSON_TYPE, '{"status":"ok"}', NO_STORE);
  server.route('GET', '/livez', alive, false);
  server.route('GET', '/metrics', (exchange) => {
    void renderMetrics().then((text) => exchange.send(200, METRICS_CONTENT_TYPE, text, NO_STORE));
  });
  server.fallback((exchange) => {
    exchange.send(404, JSON_TYPE, '{"code":"not_found","message":"no such path"}');
  });
}
