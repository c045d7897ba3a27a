import { messageOf } from '../../core/files.ts';
import {
  type DoctorCheck,
  failure,
  type NamedObservation,
  type Observation,
} from './observation.ts';

/** A check that takes longer is given up, and has failed; milliseconds. */
const CHECK_MS_MAX = 5_000;

export type Diagnosis = {
  /** In the order of the checks. */
  readonly observations: readonly NamedObservation[];
  /** Whether something that a check began goes on. */
  readonly isHanging: boolean;
};

/** Runs checks beside each other, each for so long at most. `onDone` is called with how many have ended. Never rejects. */
export async function runChecks(
  checks: readonly DoctorCheck[],
  onDone: (done: number) => void,
  millisecondsMax = CHECK_MS_MAX,
): Promise<Diagnosis> {
  let done = 0;
  let isHanging = false;
  const all = checks.map(async ({ name, run }) => {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<readonly Observation[]>((resolve) => {
      timer = setTimeout(() => {
        isHanging = true;
        resolve([failure(`gave no answer within ${millisecondsMax / 1000} s`)]);
      }, millisecondsMax);
    });
    const seen = await Promise.race([ran(run), late]);
    clearTimeout(timer);
    onDone(++done);
    return seen.map((observation) => ({ check: name, ...observation }));
  });
  const observations = (await Promise.all(all)).flat();
  return { observations, isHanging };
}

async function ran(run: DoctorCheck['run']): Promise<readonly Observation[]> {
  try {
    return await run();
  } catch (error) {
    return [failure(messageOf(error))];
  }
}
