import { messageOf } from '../../core/files.ts';
import {
  type DoctorCheck,
  failure,
  type NamedObservation,
  type Observation,
} from './observation.ts';

/** Time in ms after which a check is abandoned and has failed. */
const CHECK_MS_MAX = 5_000;

export type Diagnosis = {
  /** In the order of the checks. */
  readonly observations: readonly NamedObservation[];
  /** True if an abandoned check is still running. */
  readonly isHanging: boolean;
};

/**
 * Runs checks concurrently, each with a timeout. Calls `onDone` with the number of finished checks.
 * Never rejects.
 */
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
