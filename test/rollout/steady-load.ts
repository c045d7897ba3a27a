import { Agent, request } from 'node:http';

/** One answer, or why there is none. */
export type Outcome = {
  readonly tenant: number;
  /** Milliseconds since the load began. */
  readonly startMs: number;
  readonly tookMs: number;
  /** HTTP status; 0: the connection failed. */
  readonly status: number;
  readonly error?: string;
};

export type LoadOptions = {
  readonly host?: string;
  readonly port: number;
  /** Callers, each of which asks again `pauseMs` after its answer, over connections that it keeps. */
  readonly callers: number;
  readonly pauseMs: number;
  readonly tenants: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Path and body of the n-th request, of `tenant`. */
  readonly call: (tenant: number, n: number) => { readonly path: string; readonly body: string };
};

/** Requests that go on until `stop`, none of which is repeated by the client. */
export interface SteadyLoad {
  readonly outcomes: readonly Outcome[];
  /** Ends it; what is under way is awaited. */
  stop(): Promise<readonly Outcome[]>;
}

/** The header by which balancers find the instance of a tenant. */
export const SHARD_HEADER = 'x-gatehouse-shard';

/** Starts asking. Each request names its shard in `SHARD_HEADER`. */
export function startLoad(options: LoadOptions): SteadyLoad {
  const agent = new Agent({ keepAlive: true, maxSockets: options.callers });
  const outcomes: Outcome[] = [];
  const beganMs = performance.now();
  let isOver = false;
  let count = 0;
  const caller = async (): Promise<void> => {
    while (!isOver) {
      const n = count++;
      const tenant = n % options.tenants;
      const startMs = performance.now();
      const [status, error] = await one(agent, options, tenant, n);
      outcomes.push({
        tenant,
        startMs: startMs - beganMs,
        tookMs: performance.now() - startMs,
        status,
        ...(error === undefined ? {} : { error }),
      });
      if (options.pauseMs > 0) await new Promise((done) => setTimeout(done, options.pauseMs));
    }
  };
  const callers = Promise.all(Array.from({ length: options.callers }, caller));
  return {
    outcomes,
    stop: async () => {
      isOver = true;
      await callers;
      agent.destroy();
      return outcomes;
    },
  };
}

function one(
  agent: Agent,
  { host = '127.0.0.1', port, headers, call }: LoadOptions,
  tenant: number,
  n: number,
): Promise<readonly [status: number, error?: string]> {
  const { path, body } = call(tenant, n);
  return new Promise((resolve) => {
    const sent = request(
      {
        host,
        port,
        path,
        agent,
        method: 'POST',
        headers: { ...headers, [SHARD_HEADER]: `default/${tenantName(tenant)}` },
      },
      (response) => {
        const parts: Buffer[] = [];
        response.on('data', (part: Buffer) => parts.push(part));
        response.once('error', (error) => resolve([0, error.message]));
        response.once('end', () => {
          const status = response.statusCode ?? 0;
          resolve(status === 200 ? [200] : [status, Buffer.concat(parts).toString()]);
        });
      },
    );
    sent.once('error', (error) => resolve([0, error.message]));
    sent.end(body);
  });
}

export function tenantName(tenant: number): string {
  return `tenant-${tenant}`;
}

/** The `share` quantile of the answers' times, ms. */
export function quantileMs(outcomes: readonly Outcome[], share: number): number {
  const sorted = outcomes.map(({ tookMs }) => tookMs).toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
