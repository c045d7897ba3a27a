import { describe, expect, test } from 'vitest';
import { runDifferential } from '../../scripts/peers/differential.ts';
import { findOpenFga, startOpenFga } from '../../scripts/peers/openfga-server.ts';
import { QueryScopeSchema } from '../../src/gen/gatehouse/v1/query_service_pb.ts';
import { startService } from '../support/service.ts';

/* A short run of `npm run replay:peers -- --against found`: random stores in a running OpenFGA and here, asked the same. */

const program = findOpenFga();
/** More than one once questions name a version. */
const VERSIONS_MAX = 'modelVersion' in QueryScopeSchema.field ? 3 : 1;
const QUESTIONS = 1_500 * Number(process.env['FUZZ_RUNS'] ?? 1);

describe.skipIf(program === undefined)('OpenFGA (Go builds it)', () => {
  test('allows what is allowed here, and nothing else, but for causes that are listed', async () => {
    const [openFga, gatehouse] = await Promise.all([startOpenFga(program ?? ''), startService()]);
    try {
      const said: string[] = [];
      const counts = await runDifferential({
        openFgaUrl: openFga.baseUrl,
        gatehouse,
        seed: process.env['SEED'] ?? `${Date.now()}`,
        questions: QUESTIONS,
        versionsMax: VERSIONS_MAX,
        report: (line) => said.push(line),
      });
      expect(counts.differences, said.join('\n')).toBe(0);
      // The check of models refuses what can never have been meant; whatever else is a model that cannot move here.
      const refused = said.filter((line) => line.startsWith('refused here'));
      expect(refused.filter((line) => !line.includes('can never exclude anybody'))).toEqual([]);
      const share = (part: number): number => part / counts.questions;
      expect(share(counts.allowed)).toBeGreaterThan(0.2);
      expect(share(counts.usersets)).toBeGreaterThan(0.1);
      expect(counts.contextual).toBeGreaterThan(0);
    } finally {
      await gatehouse.stop();
      await openFga.stop();
    }
  }, 120_000);
});
