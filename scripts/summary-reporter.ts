import type { Reporter, TestModule, Vitest } from 'vitest/node';
import { readAllowedSkips, reasonOfSkip } from './allowed-skips.ts';
import { boundSeconds, type CpuBound, overCpuBound } from './cpu-bound.ts';

const SLOWEST_SHOWN = 20;
/** What a file outside of the long run may take; a whole run takes some 1,200 s on a quiet machine. */
const CPU_BOUND: CpuBound = { secondsMax: 15, shareMax: 0.012 };

type Skip = { readonly name: string; readonly reason: string | undefined };

/**
 * Ends a run with its slowest files, with every skipped test and why it may be skipped, and with the plain
 * line `N passed, N failed` (and `N skipped` where there are any). A file that could not run counts as
 * one failure. A skip that test/allowed-skips.json does not allow makes the run fail, and so does a file outside of
 * the long run that takes too much CPU.
 */
export default class SummaryReporter implements Reporter {
  readonly #cpuBound: CpuBound;
  #vitest: Vitest | undefined;

  constructor({ cpuBound = CPU_BOUND }: { readonly cpuBound?: CpuBound } = {}) {
    this.#cpuBound = cpuBound;
  }

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  async onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): Promise<void> {
    let passed = 0;
    let failed = unhandled.length;
    const skipped: { readonly module: TestModule; readonly name: string }[] = [];
    for (const module of modules) {
      let failedHere = 0;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'passed') passed++;
        else if (state === 'skipped') skipped.push({ module, name: test.fullName });
        else failedHere++;
      }
      failed += failedHere === 0 && !module.ok() ? 1 : failedHere;
    }
    const tail = skipped.length === 0 ? '' : `, ${skipped.length} skipped`;
    // Whoever asks for tests by name skips all others on purpose.
    const isWhole = this.#vitest?.config.testNamePattern === undefined;
    if (isWhole) tellSlowest(modules);
    if (isWhole && failed === 0) await this.#tellCostly(modules);
    // Of a file that fails, tests are skipped for that reason alone.
    const ofGood = skipped.filter(({ module }) => module.ok());
    const names = ofGood.map(({ module, name }) => `${module.relativeModuleId} > ${name}`);
    if (isWhole) tellSkips(names);
    process.stdout.write(`\n${passed} passed, ${failed} failed${tail}\n`);
  }

  async #tellCostly(modules: readonly TestModule[]): Promise<void> {
    const costs = modules.map((module) => {
      return { file: module.relativeModuleId, cpuSeconds: module.meta().cpuSeconds ?? 0 };
    });
    const root = this.#vitest?.config.root ?? process.cwd();
    const bound = boundSeconds(costs, this.#cpuBound);
    const over = await overCpuBound(costs, bound, root);
    if (over.length === 0) return;
    const lines = over.map((one) => `${one.cpuSeconds.toFixed(1).padStart(7)} s  ${one.file}`);
    process.stdout.write(
      `\nMore than ${Number(bound.toFixed(2))} s of CPU twice: split these files, or move what is long to x.long.test.ts\n${lines.join('\n')}\n`,
    );
    process.exitCode = 1;
  }
}

function tellSlowest(modules: readonly TestModule[]): void {
  if (modules.length <= SLOWEST_SHOWN) return;
  const rows = modules.map((module) => {
    const { collectDuration, duration } = module.diagnostic();
    const cpu = module.meta().cpuSeconds;
    return { file: module.relativeModuleId, seconds: (collectDuration + duration) / 1000, cpu };
  });
  const slowest = rows.toSorted((a, b) => b.seconds - a.seconds).slice(0, SLOWEST_SHOWN);
  const lines = slowest.map(({ file, seconds, cpu }) => {
    return `${seconds.toFixed(1).padStart(7)} s ${(cpu?.toFixed(1) ?? '').padStart(7)} s of CPU  ${file}`;
  });
  process.stdout.write(`\nSlowest files\n${lines.join('\n')}\n`);
  for (const [kind, ofKind] of Object.entries(Object.groupBy(modules, kindOf))) {
    const sum = (ofKind ?? []).reduce(
      (total, module) => total + (module.meta().cpuSeconds ?? 0),
      0,
    );
    process.stdout.write(`${kind}: ${ofKind?.length} files, ${sum.toFixed(0)} s of CPU\n`);
  }
}

const kindOf = ({ project }: TestModule): string => project.name;

function tellSkips(names: readonly string[]): void {
  if (names.length === 0) return;
  const allowed = readAllowedSkips();
  const machine = { platform: process.platform, uid: process.geteuid?.(), env: process.env };
  const skips = names.map((name): Skip => {
    return { name, reason: reasonOfSkip(name, allowed, machine) };
  });
  const lines = skips.map(({ name, reason }) => `${name}\n    ${reason ?? 'NOT ALLOWED'}`);
  process.stdout.write(`\nSkipped tests\n${lines.join('\n')}\n`);
  const refused = skips.filter(({ reason }) => reason === undefined).length;
  if (refused === 0) return;
  process.stdout.write(`\n${refused} skipped tests are not on test/allowed-skips.json\n`);
  process.exitCode = 1;
}
