import type { ServerSample } from './run-result.ts';

const TIMEOUT_MS = 900;
const BYTES_MAX = 16 << 20;
const MIB = 1 << 20;

/** Asks all processes of a service for their metrics, again and again, from a start that it is told, and sums them. */
export class ServerMetrics {
  readonly #urls: readonly string[];
  readonly #token: string | undefined;
  readonly #samples: ServerSample[] = [];
  #timer: NodeJS.Timeout | undefined;
  #startMs = 0;
  #before: { readonly atMs: number; readonly cpuS: number } | undefined;
  #failures = 0;

  constructor(urls: readonly string[], token: string | undefined) {
    this.#urls = urls.map((url) => `${url.replace(/\/$/, '')}/metrics`);
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
      const scaled = (name: string, factor: number, join = sumOf): number | undefined => {
        const value = values(name, join);
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
          loopDelayP99Ms: scaled('nodejs_eventloop_delay_p99_seconds', 1000, largestOf),
          poolWaiting: values('gatehouse_pg_pool_waiting_requests'),
        }),
      });
    } catch {
      // A service under load may miss one: that its seconds are missing is told by the report.
      this.#failures += 1;
    }
  }

  /** The series of a name, joined over all processes: their sum where nothing else is said. */
  async #scrape(): Promise<(name: string, join?: Join) => number | undefined> {
    const processes = await Promise.all(this.#urls.map((url) => this.#scrapeOne(url)));
    return (name, join = sumOf) => {
      const values = processes.flatMap((valueOf) => valueOf(name) ?? []);
      return values.length === 0 ? undefined : join(values);
    };
  }

  /** The sums of all series of a name, of one process. */
  async #scrapeOne(url: string): Promise<(name: string) => number | undefined> {
    const headers = this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` };
    const answer = await fetch(url, { headers, signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!answer.ok) throw new Error(`${url} answers ${answer.status}`);
    const text = await answer.text();
    if (text.length > BYTES_MAX) throw new Error(`${url} has more than 16 MiB`);
    const lines = text.split('\n');
    return (name) => {
      const values = lines
        .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
        .map((line) => Number(line.slice(line.lastIndexOf(' ') + 1)));
      return values.length === 0 ? undefined : sumOf(values);
    };
  }
}

type Join = (values: readonly number[]) => number;

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

function largestOf(values: readonly number[]): number {
  return Math.max(...values);
}

type Figures = Omit<ServerSample, 'second'>;

function defined(figures: { readonly [K in keyof Figures]: number | undefined }): Figures {
  return Object.fromEntries(Object.entries(figures).filter(([, value]) => value !== undefined));
}
