// Records of benchmarks that docs/benchmarks.md is written from; yields nothing by itself.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import type { ProgramResult } from './programs.ts';

/** A table of figures as it was written down. */
export type RecordedTable = {
  readonly caption?: string | undefined;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
};

/** Figures of earlier runs, copied by hand: the commit is not known. */
export type TranscribedRecord = {
  readonly title: string;
  readonly command: string;
  readonly about: readonly string[];
  readonly date: string;
  readonly commit: 'transcribed';
  readonly machine: string;
  readonly load: string;
  readonly tables: readonly RecordedTable[];
};

/** A run of `npm run bench -- --json FILE`. */
export type MeasuredRecord = {
  readonly title: string;
  readonly command: string;
  readonly date: string;
  readonly commit: string;
  readonly machine: Machine;
  /** Load averages of a minute, before and after the run. */
  readonly load: { readonly before: number; readonly after: number };
  readonly programs: readonly ProgramResult[];
};

/** What a run depends on of the machine. */
export type Machine = {
  readonly node: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
};

export function machineOf(): Machine {
  const cores = cpus();
  return {
    node: process.version,
    cpu: cores[0]?.model ?? '',
    cores: cores.length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
  };
}

/** The load average of the last minute, to a tenth. */
export function loadNow(): number {
  return Math.round((loadavg()[0] ?? 0) * 10) / 10;
}

/** The commit of the tree, with `+` behind it where files differ from it. */
export function commitOfTree(): string {
  const git = (...args: string[]): string => execFileSync('git', args, { encoding: 'utf8' }).trim();
  const isChanged = git('status', '--porcelain', '--untracked-files=no') !== '';
  return `${git('rev-parse', '--short', 'HEAD')}${isChanged ? '+' : ''}`;
}

/** Writes a record for bench/results, laid out as the formatter does not change it. */
export function writeRecord(path: string, record: MeasuredRecord): void {
  writeFileSync(path, `${JSON.stringify(record, null, 2)}\n`);
}
