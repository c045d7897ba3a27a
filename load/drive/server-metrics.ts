import type { ServerSample } from './run-result.ts';

const TIMEOUT_MS = 900;
const BYTES_MAX = 16 << 20;
/** Figures by series and unit; of several processes the sum counts, of delays the longest. */
const FIGURES = [
  ['residentMib', 'process_resident_memory_bytes', 1 / 2 ** 20],
  ['workerQueue', 'gatehouse_worker_queue_requests', 1],
  ['writeQueue', 'gatehouse_write_queue_requests', 1],
  ['loopDelayP99Ms', 'nodejs_eventloop_delay_p99_seconds', 1000],
  ['poolWaiting', 'gatehouse_pg_pool_waiting_requests', 1],
] as const;

/** Asks all processes of a service for their metrics, again and again, from a start that it is told, and sums them. */
export class ServerMetrics {
  readonly #urls: readonly string[];
  readonly #headers: Record<string, string>;
  readonly samples: ServerSample[] = [];
  /** Scrapes that failed: their seconds are missing. */
  failures = 0;
  #timer: NodeJS.Timeout | undefined;
  #startMs = 0;
  #before: { readonly atMs: number; readonly cpuS: number } | undefined;

  constructor(urls: readonly string[], token: string | undefined) {
    this.#urls = urls.map((url) => `${url.replace(/\/$/, '')}/metrics`);
    this.#headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  }

  start(): void {
    this.#startMs = performance.now();
    const take = (): void => {
      // A service under load may miss one: that its seconds are missing is told by the report.
      this.#take().catch(() => this.failures++);
    };
    take();
    this.#timer = setInterval(take, 1000);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #take(): Promise<void> {
    const values = await this.scrape();
    const atMs = performance.now();
    const sample: Record<string, number> = {};
    const [cpu, before] = [values('process_cpu_seconds_total'), this.#before];
    if (cpu.length > 0) {
      const cpuS = sumOf(cpu);
      if (before) sample['cpuCores'] = ((cpuS - before.cpuS) * 1000) / (atMs - before.atMs);
      this.#before = { atMs, cpuS };
    }
    for (const [figure, series, unit] of FIGURES) {
      const all = values(series);
      const joined = figure === 'loopDelayP99Ms' ? Math.max(...all) : sumOf(all);
      if (all.length > 0) sample[figure] = joined * unit;
    }
    this.samples.push({ second: (atMs - this.#startMs) / 1000, ...sample });
  }

  /** The values of all series of a name, of all processes. Errors: throws what is wrong with an address or answer. */
  async scrape(): Promise<(name: string) => readonly number[]> {
    const pages = this.#urls.map(async (url) => {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      const answer = await fetch(url, { headers: this.#headers, signal });
      if (!answer.ok) throw new Error(`${url} answers ${answer.status}`);
      const text = await answer.text();
      if (text.length > BYTES_MAX) throw new Error(`${url} has more than 16 MiB`);
      return text.split('\n');
    });
    const lines = (await Promise.all(pages)).flat();
    return (name) =>
      lines
        .filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
        .map((line) => Number(line.slice(line.lastIndexOf(' ') + 1)));
  }
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
