import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from '../cluster/cluster.ts';
import type { Random } from '../workload/random.ts';
import type { Recorder } from '../workload/recorder.ts';
import { DISTURBANCES, type DisturbanceName, fill } from './disturbances.ts';

export type DisturberOptions = {
  readonly cluster: Cluster;
  readonly random: Random;
  readonly names: readonly DisturbanceName[];
  /** Instances to have when all is well. */
  readonly instances: number;
};

const QUIET_MS = 1_200;

/**
 * Disturbs a cluster, one thing after another, and leaves it whole. Each name comes once before any comes
 * again, in an order that the seed gives.
 */
export class Disturber {
  readonly #options: DisturberOptions;
  #left: DisturbanceName[] = [];
  #isEnding = false;
  #running: Promise<void> = Promise.resolve();

  constructor(options: DisturberOptions) {
    this.#options = options;
  }

  /** Errors: those of a process that does not start. */
  async run(
    isStopped: () => boolean,
    say: (text: string) => void,
    recorder: Recorder,
  ): Promise<void> {
    const running = this.#run(() => this.#isEnding || isStopped(), say, recorder);
    this.#running = running.catch(() => undefined);
    await running;
  }

  /** Ends all processes, and resolves once nothing is disturbed any more: what is under way would start servers again. */
  async end(): Promise<void> {
    this.#isEnding = true;
    await this.#options.cluster.end();
    await this.#running;
  }

  async #run(
    isStopped: () => boolean,
    say: (text: string) => void,
    recorder: Recorder,
  ): Promise<void> {
    const { cluster, random, names, instances } = this.#options;
    await sleep(QUIET_MS / 2);
    try {
      while (!isStopped() && names.length > 0) {
        const name = this.#next();
        await DISTURBANCES[name]({ cluster, random, say, recorder });
        // Mostly all are there: what an instance that is alone answers shows less.
        if (!isStopped() && (cluster.occupied.length < 2 || random.chance(0.6))) {
          await fill({ cluster, say }, instances);
        }
        await sleep(random.integer(QUIET_MS));
      }
      while (!isStopped()) await sleep(50);
    } finally {
      cluster.heal();
      if (!this.#isEnding) await fill({ cluster, say }, instances);
    }
  }

  #next(): DisturbanceName {
    const { random, names } = this.#options;
    if (this.#left.length === 0) this.#left = [...names];
    const at = random.integer(this.#left.length);
    return this.#left.splice(at, 1)[0] as DisturbanceName;
  }
}
