import type { ServerSample } from './run-result.ts';

const TIMEOUT_MS = 900;
const BYTES_MAX = 16 << 20;
const MIB = 1 << 20;

/** Asks a service for its metrics, again and again, from a start that it is told. */
export class ServerMetrics {
  readonly #url: string;
  readonly #token: string | undefined;
  readonly #samples: ServerSample[] = [];
  #timer: NodeJS.Timeout | undefined;
  #startMs = 0;
  #before: { readonly atMs: number; readonly cpuS: number } | undefined;
  #failures = 0;

  constructor(url: string, token: string | undefined) {
    this.#url = `${url.replace(/\/$/, '')}/metrics`;
    this.#token = token;
  }

  get samples(): readonly ServerSample[] {
    return this.#samples;
  }

  /** Scrapes that failed: their seconds are missing. */
  get failures(): number {
    return this.#failures;
  }

  /** One scrape. Errors: throws what is wrong with the address or the answer. */
  async probe(): Promise<void> {
    await this.#scrape();
  }

  start(): void {
    this.#startMs = performance.now();
    void this.#take();
    this.#timer = setInterval(() => void this.#take(), 1000);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #take(): Promise<void> {
    try {
      const values = await this.#scrape();
      const atMs = performance.now();
      const cpuS = values('process_cpu_seconds_total');
      const before = this.#before;
      if (cpuS !== undefined) this.#before = { atMs, cpuS };
      const scaled = (name: string, factor: number): number | undefined => {
        const value = values(name);
        return value === undefined ? undefined : value * factor;
      };
      this.#samples.push({
        second: (atMs - this.#startMs) / 1000,
        ...defined({
          cpuCores:
            before === undefined || cpuS === undefined
              ? undefined
              : ((cpuS - before.cpuS) * 1000) / (atMs - before.atMs),
          residentMib: scaled('process_resident_memory_bytes', 1 / MIB),
          workerQueue: values('gatehouse_worker_queue_requests'),
          writeQueue: values('gatehouse_write_queue_requests'),
          loopDelayP99Ms: scaled('nodejs_eventloop_delay_p99_seconds', 1000),
          poolWaiting: values('gatehouse_pg_pool_waiting_requests'),
        }),
      });
    } catch {
      // A service under load may miss one: that its seconds are missing is told by the report.
      this.#failures += 1;
    }
  }

  /** The sums of all series of a name. */
  async #scrape(): Promise<(name: string) => number | undefined> {
    const headers = this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` };
    const answer = await fetch(this.#url, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!answer.ok) throw new Error(`${this.#url} answers ${answer.status}`);
    const text = await answer.text();
    if (text.length > BYTES_MAX) throw new Error(`${this.#url} has more than 16 MiB`);
    const lines = text.split('\n');
    return (name) => {
      const values = lines
        .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
        .map((line) => Number(line.slice(line.lastIndexOf(' ') + 1)));
      return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0);
    };
  }
}

type Figures = Omit<ServerSample, 'second'>;

function defined(figures: { readonly [K in keyof Figures]: number | undefined }): Figures {
  return Object.fromEntries(Object.entries(figures).filter(([, value]) => value !== undefined));
}
