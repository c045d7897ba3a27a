import { type Service, startService } from '../../bench/harness/service.ts';
import { drive } from '../drive/drive.ts';
import { parsePlan } from '../drive/parse-plan.ts';
import type { RunResult, RunSecond } from '../drive/run-result.ts';
import type { LabelledRun } from '../report/page.ts';

/** What a scenario may be told on the command line. */
export type LoadOptions = {
  /** Size of the data set: 1 is 101,000 tuples. */
  readonly scale: number;
  readonly seconds: number;
  /** Arrivals per second; undefined takes the scenario's own default. */
  readonly rate: number | undefined;
  readonly connections: number;
  /** Processes that ask. */
  readonly generators: number;
  readonly seed: number;
};

/** Ctrl-C ended a run of a scenario: what it has is not what the scenario is for. */
export class Interrupted extends Error {}

/** Figures by name (milliseconds, per second, ratios), and the runs behind them, of which a report shows two at most. */
export type ScenarioResult = {
  readonly figures: Readonly<Record<string, unknown>>;
  readonly runs?: readonly LabelledRun[];
};

/** One load scenario, which starts what it asks and stops it. */
export type Scenario = {
  readonly name: string;
  readonly question: string;
  run(options: LoadOptions): Promise<ScenarioResult>;
};

/** What a run asks of the data set: operations and stages as a file of load/mixes has them. */
type Asked = {
  readonly operations: readonly object[];
  readonly stages: readonly object[];
  readonly deadline_ms?: number;
};

/** Asks, and ends with what came of it. */
export type Ask = (title: string, asked: Asked) => Promise<RunResult>;

type Asking = Pick<Service, 'baseUrl' | 'token' | 'adminSecret'> & {
  readonly metricsUrls: readonly string[];
};

/** Runs plans against a service; the first one inserts the data set. Errors: Interrupted, those of `drive`. */
export function askOf(service: Asking, { scale, seed, generators }: LoadOptions): Ask {
  const { baseUrl: url, token, adminSecret, metricsUrls } = service;
  let isFilled = false;
  return async (title, asked) => {
    const plan = { project: 'load-scenario', tenant: 't1', data: { scale, seed }, ...asked };
    const run = await drive({
      title,
      target: { url, token },
      adminSecret,
      metricsUrls,
      plan: parsePlan(JSON.stringify(plan)),
      replay: undefined,
      generators,
      connections: 1_000,
      isAgreed: false,
      isFilled,
    });
    if (!run.isWhole) throw new Interrupted('interrupted: no figures');
    isFilled = true;
    return run;
  };
}

/** Starts a service of its own to ask. Errors: those of `startService`. */
export async function askOwn(
  env: Readonly<Record<string, string>>,
  options: LoadOptions,
): Promise<Ask> {
  const service = await startService(env);
  return askOf({ ...service, metricsUrls: [service.metricsUrl] }, options);
}

/** The figures of one stage: what was answered while it lasted, by second and by CPU second of the service, and latencies in ms. */
export function stageFigures(run: RunResult, stage: string) {
  const { from, to } = run.stages.find(({ name }) => name === stage) ?? { from: 0, to: 0 };
  const seconds = run.seconds.filter(({ second }) => second >= from && second < to);
  const samples = run.server.filter(({ second }) => second > from + 0.5 && second <= to);
  const sum = (of: (second: RunSecond) => number): number =>
    seconds.reduce((total, second) => total + of(second), 0);
  const mean = (values: readonly number[]): number =>
    values.reduce((a, b) => a + b, 0) / values.length;
  const perSecond = mean(seconds.map(({ answered }) => answered));
  const parts = run.operations.filter((one) => one.stage === stage);
  return {
    askedPerSecond: sum(({ offered }) => offered) / seconds.length,
    notSentPerSecond: sum(({ notSent }) => notSent) / seconds.length,
    answeredPerSecond: perSecond,
    answeredPerCpuSecond: perSecond / mean(samples.flatMap(({ cpuCores }) => cpuCores ?? [])),
    residentMib: Math.max(...samples.flatMap(({ residentMib }) => residentMib ?? [])),
    operations: Object.fromEntries(
      parts.map(({ operation: name, ...one }) => [
        name,
        { refused: one.refused, wrong: one.wrong, ...one.latencies },
      ]),
    ),
  };
}
