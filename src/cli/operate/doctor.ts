import type { CliLine } from '../core/command.ts';
import { EXIT_NO, EXIT_OK } from '../core/exit-codes.ts';
import { checksOf } from './doctor/checks.ts';
import type { NamedObservation } from './doctor/observation.ts';
import { runChecks } from './doctor/run-checks.ts';
import { withoutSecrets } from './doctor/without-secrets.ts';
import { assertNoWords } from './words.ts';

const COLORS = { ok: 'green', warn: 'yellow', fail: 'red' } as const;

/** `doctor`. Resolves to 1 if a check failed. Errors: INVALID_REQUEST. */
export async function runDoctor(line: CliLine): Promise<number> {
  assertNoWords(line);
  const { output, notes } = line.screens;
  const checks = checksOf(line.environment);
  const { observations: seen, isHanging } = await runChecks(checks, (done) => {
    notes.status(`${done} of ${checks.length} checks`);
  });
  notes.status('');
  const observations = withoutSecrets(seen, line.environment);
  const count = (state: NamedObservation['state']): number =>
    observations.filter((one) => one.state === state).length;
  const [failed, warned] = [count('fail'), count('warn')];
  if (line.isSet('json'))
    output.line(JSON.stringify({ failed, warned, observations }, undefined, 2));
  else for (const one of observations) show(line, one);
  notes.line(`${observations.length - failed - warned} ok, ${warned} to look at, ${failed} failed`);
  const code = failed > 0 ? EXIT_NO : EXIT_OK;
  // An abandoned check would keep the process alive until it ends.
  if (isHanging) setTimeout(() => process.exit(code), 0);
  return code;
}

function show({ screens: { output } }: CliLine, one: NamedObservation): void {
  const head = output.paint(one.state.padEnd(4), COLORS[one.state]);
  output.line(`${head}  ${one.check}: ${output.foreign(one.seen)}`);
  if (one.advice !== undefined) output.line(`      do: ${output.foreign(one.advice)}`);
}
