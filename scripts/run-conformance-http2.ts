// Runs h2spec against a service of its own, prints the cases that pass, and fails on one that passes by
// test/conformance-http2/cases.txt and does not here. `--write` prints that list anew.
// Without Go the run is skipped, with a message and exit code 0; H2SPEC may name a program.
import { h2specProgram, missingOf, runH2spec } from '../test/conformance-http2/h2spec.ts';
import { startService } from '../test/support/service.ts';

const program = h2specProgram();
if (program === undefined) {
  process.stdout.write('conformance: skipped, it needs Go 1.22 or newer to build h2spec\n');
  process.exit(0);
}
const service = await startService();
const results = await runH2spec(program, Number(service.address.split(':')[1])).catch(
  (error: unknown) => {
    process.stderr.write(`h2spec: ${String(error)}\n`);
    return [];
  },
);
await service.stop();
const isList = process.argv.includes('--write');
for (const { name, isPassed } of results) {
  const mark = isPassed ? '' : 'not: ';
  process.stdout.write(
    isList ? `${mark}${name}\n` : `${isPassed ? 'passed' : 'FAILED'}  ${name}\n`,
  );
}
const missing = missingOf(results);
const passed = results.filter(({ isPassed }) => isPassed).length;
if (!isList) process.stdout.write(`h2spec: ${passed} of ${results.length} cases pass\n`);
for (const name of missing)
  process.stderr.write(`h2spec: passed before and does not now: ${name}\n`);
process.exit(missing.length === 0 || isList ? 0 : 1);
