import type { Reporter, TestModule } from 'vitest/node';

/** Prints the CPU seconds of each file of a run, a line of JSON: `{"file": seconds}`. See cpu-bound.ts. */
export default class CpuReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const rows = modules.map((module) => [module.relativeModuleId, module.meta().cpuSeconds ?? 0]);
    process.stdout.write(`${JSON.stringify(Object.fromEntries(rows))}\n`);
  }
}
