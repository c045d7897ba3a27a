import { startService } from '../../test/support/service.ts';
import { type DifferentialCounts, runDifferential } from './differential.ts';
import { findOpenFga, OPENFGA_VERSION, startOpenFga, versionOf } from './openfga-server.ts';

/**
 * Asks a running OpenFGA (`against` is its URL, a program that is started, or 'found' for the program of this machine) and an instance
 * of one's own the same random questions; prints differences, the seed and counts. Returns the exit code: 0 where
 * no allow differs, 1 where one does, 2 where there is no OpenFGA.
 */
export async function replayAgainst(
  against: string,
  questions: number,
  seed: string,
  versionsMax: number,
): Promise<number> {
  const write = (line: string): void => void process.stdout.write(`${line}\n`);
  const isUrl = /^https?:/.test(against);
  const program = against === 'found' ? findOpenFga() : against;
  if (program === undefined) {
    write(
      `OpenFGA is not here: go install github.com/openfga/openfga/cmd/openfga@v${OPENFGA_VERSION}`,
    );
    return 2;
  }
  if (!isUrl) {
    const version = versionOf(program);
    if (version !== '' && version !== OPENFGA_VERSION)
      write(`note: this is OpenFGA ${version}, not ${OPENFGA_VERSION}`);
  }
  const openFga = isUrl ? undefined : await startOpenFga(program);
  const service = await startService();
  try {
    write(`seed ${seed}`);
    const openFgaUrl = openFga?.baseUrl ?? against.replace(/\/$/, '');
    const options = { openFgaUrl, gatehouse: service, seed, questions, versionsMax, report: write };
    const counts = await runDifferential(options);
    for (const line of linesOf(counts)) write(line);
    return counts.differences === 0 ? 0 : 1;
  } finally {
    await service.stop();
    await openFga?.stop();
  }
}

/** What was asked and answered, a fact a line. */
export function linesOf(counts: DifferentialCounts): readonly string[] {
  const share = (part: number): string => `${((100 * part) / counts.questions).toFixed(1)} %`;
  return [
    `${counts.questions} questions about ${counts.stores} stores: ${share(counts.allowed)} allowed, ` +
      `${share(counts.usersets)} with usersets as subjects, ${share(counts.withMisfits)} pinned with misfit tuples, ` +
      `${share(counts.contextual)} with contextual tuples, ${share(counts.errors)} errors there`,
    `models not taken: ${counts.refusedThere} there, ${counts.refusedHere} here`,
    `${counts.differences} allows differ; errors differ without an allow: ${counts.errorsDiffer}`,
    ...[...counts.causes].map(([name, count]) => `listed cause, ${count}: ${name}`),
  ];
}
