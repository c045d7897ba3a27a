import { cpuSeconds } from '../../bench/harness/service.ts';
import type { FsckReport } from '../../src/gateway/fsck-routes.ts';
import { mixedQuestions } from '../../test/support/dataset/questions.ts';
import { type RateResult, runAtRate } from '../harness/arrivals.ts';
import { checkIssue, type Prepared, prepare } from '../harness/prepare.ts';
import type { LoadOptions, Scenario } from '../harness/scenario.ts';

const ROUNDS = 5;
const PER_SECOND = 500;

type Window = Pick<RateResult, 'p50Ms' | 'p99Ms'> & { readonly cpuS: number };

/**
 * The same questions of one service that compares nothing, of one that compares its index over and over at the default
 * rate, and of the first one while it compares all it can: in turns, so that a noisy machine is noisy for each.
 */
export const checkBesideFsck: Scenario = {
  name: 'check-beside-fsck',
  purpose: 'Check while the index is compared with what is stored, in the background and on demand',
  question: 'What do comparisons of an index cost those who ask it, and how fast are they?',
  async run(options, start) {
    const off = await prepare(options, start, { GATEWAY_FSCK_ROWS_PER_SECOND: '0' });
    const background = await prepare(options, start, { GATEWAY_FSCK_INTERVAL_SECONDS: '1' });
    const windows: Record<string, Window[]> = { off: [], background: [], onDemand: [] };
    for (const each of [off, background]) await window(each, { ...options, seconds: 2 });
    for (let round = 0; round < ROUNDS; round++) {
      windows['off']?.push(await window(off, options));
      windows['background']?.push(await window(background, options));
      const demand = new Demand(off);
      windows['onDemand']?.push(await window(off, options));
      await demand.stop();
    }
    const before = await cpuSeconds(off.service.pid);
    const { rows, seconds, differences } = await new Demand(off).stop();
    const alone = {
      rows,
      seconds,
      differences,
      cpuS: (await cpuSeconds(off.service.pid)) - before,
    };
    for (const each of [off, background]) {
      await each.client.close();
      await each.open.close();
    }
    const medians = Object.entries(windows).map(([name, all]) => [
      name,
      { p50Ms: median(all, 'p50Ms'), p99Ms: median(all, 'p99Ms'), cpuS: median(all, 'cpuS') },
    ]);
    return { ...(Object.fromEntries(medians) as object), alone };
  },
};

async function window(
  { service, open, world, scope }: Prepared,
  { rate, seconds }: LoadOptions,
): Promise<Window> {
  const issue = checkIssue(open, mixedQuestions(world, 20_000, 'uniform'), scope);
  const before = await cpuSeconds(service.pid);
  const { p50Ms, p99Ms } = await runAtRate({ perSecond: rate ?? PER_SECOND, seconds, issue });
  return { p50Ms, p99Ms, cpuS: (await cpuSeconds(service.pid)) - before };
}

function median(all: readonly Window[], of: keyof Window): number {
  const sorted = all.map((each) => each[of]).toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** Asks for one comparison after the other. */
class Demand {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #running: Promise<FsckReport>;
  #isOver = false;

  constructor({ service }: Prepared) {
    this.#url = `${service.metricsUrl}/fsck`;
    this.#headers = { authorization: `Bearer ${service.token}` };
    this.#running = this.#run();
  }

  /** The report of the last one, which has ended. */
  stop(): Promise<FsckReport> {
    this.#isOver = true;
    return this.#running;
  }

  async #run(): Promise<FsckReport> {
    for (;;) {
      await this.#ask('POST');
      let report = await this.#ask('GET');
      while (report.state === 'running') {
        await new Promise((resolve) => setTimeout(resolve, 50));
        report = await this.#ask('GET');
      }
      if (this.#isOver) return report;
    }
  }

  async #ask(method: string): Promise<FsckReport> {
    const response = await fetch(this.#url, { method, headers: this.#headers });
    return (await response.json()) as FsckReport;
  }
}
