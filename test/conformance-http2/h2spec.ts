import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/* h2spec (github.com/summerwind/h2spec, MIT) against a listener. go.mod and go.sum say which of its versions is built, and of what. */

/** A case by its section of the suite and its title, as `generic/3.5 Sends invalid connection preface`. */
export type CaseResult = { readonly name: string; readonly isPassed: boolean };

const VERSION = /h2spec (\S+)/;
const TIMEOUT_SECONDS = '5';
const folder = import.meta.dirname;

/**
 * The program: that of H2SPEC, or one built once into a folder of its own below the system's temporary one. Undefined where Go is
 * not here. Errors: throws what Go says where it cannot be built.
 */
export function h2specProgram(): string | undefined {
  const given = process.env['H2SPEC'];
  if (given !== undefined && given !== '') return given;
  const version = VERSION.exec(readFileSync(path.join(folder, 'go.mod'), 'utf8'))?.[1] ?? '';
  const binFolder = path.join(tmpdir(), `h2spec-${version.replace(/\W+/g, '-')}`);
  const program = path.join(binFolder, 'h2spec');
  if (existsSync(program)) return program;
  const go = ['go', '/usr/local/go/bin/go'].find(
    (command) => spawnSync(command, ['version'], { stdio: 'ignore' }).status === 0,
  );
  if (go === undefined) return undefined;
  mkdirSync(binFolder, { recursive: true });
  const env = { ...process.env, GOBIN: binFolder, GOFLAGS: '-mod=readonly' };
  const built = spawnSync(go, ['install', 'github.com/summerwind/h2spec/cmd/h2spec'], {
    cwd: folder,
    env,
    encoding: 'utf8',
  });
  if (built.status !== 0) throw new Error(`h2spec could not be built: ${built.stderr}`);
  return program;
}

/** Runs all cases, the strict ones too. Errors: throws where the program gives no report. */
export async function runH2spec(program: string, port: number): Promise<CaseResult[]> {
  const out = mkdtempSync(path.join(tmpdir(), 'h2spec-report-'));
  const report = path.join(out, 'report.xml');
  const args = ['-h', '127.0.0.1', '-p', String(port), '-P', '/healthz'];
  try {
    await new Promise<void>((resolve) => {
      execFile(
        program,
        [...args, '--strict', '-o', TIMEOUT_SECONDS, '-j', report],
        { maxBuffer: 16 * 1_048_576 },
        () => resolve(), // a case that fails is no failure to run: the report counts
      );
    });
    return casesOf(readFileSync(report, 'utf8'));
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
}

/** Cases of a report in the form of JUnit. */
export function casesOf(xml: string): CaseResult[] {
  const cases = xml.matchAll(
    /<testcase package="([^"]*)" classname="([^"]*)"[^>]*?(?:\/>|>([\s\S]*?)<\/testcase>)/g,
  );
  return Array.from(cases, ([, section, title, inner = '']) => ({
    name: `${section} ${title}`,
    isPassed: !/<(?:failure|error|skipped)\b/.test(inner),
  }));
}

/** The committed list: what passes, and after `not: ` what does not; `#` begins a reason. */
export function expectedCases(): { readonly passed: string[]; readonly failed: string[] } {
  const lines = readFileSync(path.join(folder, 'cases.txt'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  const failed = lines.filter((line) => line.startsWith('not: ')).map((line) => line.slice(5));
  return { passed: lines.filter((line) => !line.startsWith('not: ')), failed };
}

/** Cases of the committed list that do not pass, or did not run. */
export function missingOf(results: readonly CaseResult[]): string[] {
  const counts = new Map<string, number>();
  for (const { name, isPassed } of results) {
    if (isPassed) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return expectedCases().passed.filter((name) => {
    const left = counts.get(name) ?? 0;
    counts.set(name, left - 1);
    return left <= 0;
  });
}
