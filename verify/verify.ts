import { type Report, checkHistory, isClean } from './checker/check-history.ts';
import { type Coverage, coverageFaults, sumOf } from './checker/coverage.ts';
import type { SavedRun } from './checker/history-file.ts';
import type { History } from './checker/history.ts';
import { ClusterReach } from './cluster/cluster-reach.ts';
import { Cluster } from './cluster/cluster.ts';
import { type DisturbanceName, fill } from './disturb/disturbances.ts';
import { Disturber } from './disturb/disturber.ts';
import { coverageText, faultsText, summaryOf } from './report.ts';
import { type Random, createRandom } from './workload/random.ts';
import { type Reach, reachOf } from './workload/reachable.ts';
import { type RoundOptions, runRound } from './workload/round.ts';

export type VerifyOptions = {
  readonly seed: string;
  /** Of load, in all. */
  readonly seconds: number;
  /** Of load on the same projects: then all is checked, and new ones follow. */
  readonly roundSeconds: number;
  readonly instances: number;
  readonly faults: readonly DisturbanceName[];
  /** Checkout whose service is started. */
  readonly tree: string;
  /** Instances that somebody else runs, in place of own ones. */
  readonly target: readonly string[];
  readonly token: string;
  readonly adminSecret: string;
  readonly say: (text: string) => void;
  /** Keeps a history; returns where it is. */
  readonly save: (name: string, run: SavedRun) => string;
  /** End with the first round that shows a fault. */
  readonly isBrief?: boolean | undefined;
  /** Told of each disturbance as it comes. */
  readonly note?: ((text: string) => void) | undefined;
  /** Ends the round under way unchecked, and the run with what the rounds before it showed. */
  readonly signal?: AbortSignal | undefined;
};

/** How far the clock that decides expiry may be from this process's, in ms: docs/consistency.md. */
const CLOCK_BOUND_MS = 500;

type Stage = {
  readonly reach: Reach;
  readonly disturb: RoundOptions['disturb'];
  /** Processes that ended by themselves since the last call, as their last words. */
  readonly deaths: () => readonly string[];
  close(): Promise<void>;
};

/** What came of a run. */
export type Outcome = {
  /** Nothing is wrong with any round, and each proves what it should. */
  readonly isGood: boolean;
  /** Some answer was wrong. */
  readonly isWrong: boolean;
  /** It was ended before its time, and proves what its rounds do. */
  readonly isEnded: boolean;
  /** Of load until the first wrong answer was known of; absent where none was. */
  readonly seconds?: number | undefined;
};

/** Runs rounds of load until the time is over and checks each. */
export async function verify(options: VerifyOptions): Promise<Outcome> {
  const { seed, seconds, roundSeconds, instances, say, save } = options;
  const random = createRandom(seed);
  say(
    `seed ${seed}: ${seconds} s, ${instances} instances, faults: ${options.faults.join(' ') || 'none'}`,
  );
  const stage = await openStage(options, random);
  if (stage === undefined) {
    say(`seed ${seed}: ended before anything was asked`);
    return { isGood: false, isWrong: false, isEnded: true };
  }
  const { promise: ended, resolve: end } = Promise.withResolvers<undefined>();
  options.signal?.addEventListener('abort', () => end(undefined));
  const totals = { rounds: 0, operations: 0, histories: 0, bad: 0 };
  const covered: Coverage[] = [];
  let wrongAfter: number | undefined;
  let isEnded = false;
  const rounds = Math.max(1, Math.round(seconds / roundSeconds));
  try {
    for (let number = 0; number < rounds; number++) {
      const round = runRound({
        seed: `${seed}-${number}`,
        random: random.fork(`round ${number}`),
        seconds: seconds / rounds,
        reach: stage.reach,
        clockBoundMs: CLOCK_BOUND_MS,
        disturb: stage.disturb,
        signal: options.signal,
      });
      round.catch(() => undefined);
      const history = await Promise.race([ended, round]);
      isEnded = history === undefined;
      if (history === undefined) break;
      const path = save(history.seed, { history, instances });
      const report = checkHistory(history);
      const deaths = stage.deaths();
      say(`round ${number}: ${summaryOf(history, report)} (${path})`);
      sayFaults(say, history, report, deaths);
      covered.push(report.coverage);
      totals.rounds++;
      totals.operations += report.operations;
      totals.histories += report.shards;
      if (!isClean(report) || deaths.length > 0) totals.bad++;
      if (report.violations.length + report.brokenRules.length > 0) {
        wrongAfter ??= (seconds / rounds) * (number + 1);
        if (options.isBrief === true) break;
      }
    }
  } finally {
    await stage.close();
  }
  const { operations, histories, bad } = totals;
  const coverage = sumOf(covered);
  const lacks = coverageFaults(coverage, instances);
  say(
    `seed ${seed}: ${operations} operations in ${histories} histories; ${coverageText(coverage)}`,
  );
  for (const text of lacks) say(`proves nothing: ${text}`);
  say(`seed ${seed}: ${bad} of ${totals.rounds} rounds bad`);
  if (isEnded)
    say(`seed ${seed}: ended before its time, after ${totals.rounds} of ${rounds} rounds`);
  const isGood = !isEnded && bad === 0 && lacks.length === 0;
  return { isGood, isEnded, isWrong: wrongAfter !== undefined, seconds: wrongAfter };
}

function sayFaults(
  say: (text: string) => void,
  history: History,
  report: Report,
  deaths: readonly string[],
): void {
  const faults = faultsText(history, report);
  if (faults !== '') say(faults);
  for (const death of deaths) say(`DIED: ${death}`);
}

/** Undefined where it was ended meanwhile. */
async function openStage(options: VerifyOptions, random: Random): Promise<Stage | undefined> {
  const { target, token, adminSecret, instances, faults, tree } = options;
  if (target.length > 0) {
    const reach = reachOf(target, token, adminSecret);
    return {
      reach,
      disturb: async () => {},
      deaths: () => [],
      close: async () => {
        await Promise.all(reach.all.map(({ client }) => client.close()));
      },
    };
  }
  const reach = new ClusterReach();
  const deaths: string[] = [];
  const cluster = await Cluster.start({
    tree,
    places: instances,
    random,
    onChange: (place) => reach.changed(place),
    onDeath: (place, lines) => deaths.push(`instance ${place.index}\n${lines.join('\n')}`),
  });
  const stop = async (): Promise<void> => {
    await reach.close();
    await cluster.stop();
  };
  const { signal } = options;
  const end = (): void => void cluster.end();
  signal?.addEventListener('abort', end, { once: true });
  try {
    if (signal?.aborted !== true) await fill({ cluster, say: () => undefined }, instances);
  } catch (error) {
    if (signal?.aborted !== true) {
      await stop();
      throw error;
    }
  } finally {
    // From now on the stage is closed instead.
    signal?.removeEventListener('abort', end);
  }
  if (signal?.aborted === true) {
    await stop();
    return undefined;
  }
  const disturber = new Disturber({
    cluster,
    random: random.fork('faults'),
    names: faults,
    instances,
  });
  return {
    reach,
    disturb: (isStopped, record, recorder) => {
      const say = (text: string): void => {
        record(text);
        options.note?.(text);
      };
      return disturber.run(isStopped, say, recorder);
    },
    deaths: () => deaths.splice(0),
    close: async () => {
      await disturber.end();
      await stop();
    },
  };
}
