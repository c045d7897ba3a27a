import type { HandlerContext } from '@connectrpc/connect';
import { Code, ConnectError } from '@connectrpc/connect';
import {
  Health,
  HealthCheckResponse_ServingStatus as Status,
} from '../../gen/grpc/health/v1/health_pb.ts';
import type { ServiceRouter } from '../../http/connect/adapter-options.ts';

/** Watchers at once; each is an open stream that costs memory until its caller goes. */
const WATCHERS_MAX = 1_024;

/** State behind grpc.health.v1.Health: what load balancers and `grpc_health_probe` ask. */
export class HealthState {
  readonly #statuses = new Map<string, Status>([['', Status.NOT_SERVING]]);
  readonly #watchers = new Set<() => void>();

  /** Sets the status of `service` by its full name, '' for the server as a whole. */
  setServing(service: string, isServing: boolean): void {
    this.#statuses.set(service, isServing ? Status.SERVING : Status.NOT_SERVING);
    for (const wake of this.#watchers) wake();
  }

  /** Sets every known service at once, as readiness does. */
  setAllServing(isServing: boolean): void {
    for (const service of this.#statuses.keys()) {
      this.#statuses.set(service, isServing ? Status.SERVING : Status.NOT_SERVING);
    }
    for (const wake of this.#watchers) wake();
  }

  get watcherCount(): number {
    return this.#watchers.size;
  }

  /** Registers the service on `router`. */
  readonly routes = (router: ServiceRouter): void => {
    router.service(Health, {
      check: (request) => ({ status: this.#mustStatus(request.service) }),
      list: () => ({
        statuses: Object.fromEntries(
          [...this.#statuses].map(([service, status]) => [service, { status }]),
        ),
      }),
      watch: (request, context) => this.#watch(request.service, context),
    });
  };

  #mustStatus(service: string): Status {
    const status = this.#statuses.get(service);
    if (status === undefined) throw new ConnectError('the service is not known', Code.NotFound);
    return status;
  }

  async *#watch(service: string, context: HandlerContext) {
    if (this.#watchers.size >= WATCHERS_MAX) {
      throw new ConnectError(`${WATCHERS_MAX} watchers are open`, Code.ResourceExhausted);
    }
    let wake: () => void = () => {};
    const onChange = (): void => wake();
    this.#watchers.add(onChange);
    context.signal.addEventListener('abort', onChange, { once: true });
    try {
      let sent: Status | undefined;
      while (!context.signal.aborted) {
        const changed = new Promise<void>((resolve) => {
          wake = resolve;
        });
        const status = this.#statuses.get(service) ?? Status.SERVICE_UNKNOWN;
        if (status !== sent) {
          sent = status;
          yield { status };
        }
        if (!context.signal.aborted) await changed;
      }
    } finally {
      this.#watchers.delete(onChange);
    }
  }
}
