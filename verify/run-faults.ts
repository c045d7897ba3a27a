/**
 * `npm run verify:faults -- [--seeds 10] [--seconds 60] [--only NAME,NAME] [--first-seed 1]`: plants each fault of
 * verify/faults/ in a copy of this tree and runs the checker against it. Fails where a patch does not apply, or
 * where fewer than nine of ten seeds find the fault.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { saveRun } from './checker/history-file.ts';
import { PLANTED_FAULTS, type PlantedFault } from './planted-faults.ts';
import { verify } from './verify.ts';

const ROOT = join(import.meta.dirname, '..');
/** What an instance needs to run. */
const COPIED = ['src', 'migrations', 'package.json'];
const CAUGHT_MIN = 0.9;
const ROUND_SECONDS = 12;
/** As a shell says of what SIGINT ended. */
const ENDED = 130;

/** What is planted into: as the tree was when this began, whoever works on it meanwhile. */
function copyTree(): string {
  const base = mkdtempSync(join(tmpdir(), 'gatehouse-base-'));
  for (const name of COPIED) cpSync(join(ROOT, name), join(base, name), { recursive: true });
  return base;
}

/** A copy of `base` with a fault. Errors: throws where the patch does not apply. */
function plant(base: string, fault: PlantedFault): string {
  const tree = mkdtempSync(join(tmpdir(), `gatehouse-fault-${fault.name}-`));
  for (const name of COPIED) cpSync(join(base, name), join(tree, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'));
  const patch = join(ROOT, 'verify/faults', `${fault.name}.patch`);
  try {
    execFileSync('git', ['apply', '--whitespace=nowarn', patch], { cwd: tree, stdio: 'pipe' });
  } catch (error) {
    rmSync(tree, { recursive: true, force: true });
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr) : String(error);
    throw new Error(`${patch} does not apply any more: make it again\n${said}`, { cause: error });
  }
  return tree;
}

async function secondsUntilCaught(
  tree: string,
  { disturbances, instances, name }: PlantedFault,
  seed: string,
  seconds: number,
  out: string,
  signal: AbortSignal,
): Promise<number | undefined> {
  const outcome = await verify({
    seed,
    seconds,
    roundSeconds: ROUND_SECONDS,
    instances,
    faults: disturbances,
    tree,
    target: [],
    token: '',
    adminSecret: '',
    isBrief: true,
    signal,
    say: () => undefined,
    save: (round, run) => {
      const path = join(out, `${name}-${round}.jsonl.gz`);
      saveRun(path, run);
      return path;
    },
  });
  return outcome.isWrong ? outcome.seconds : undefined;
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string', default: '10' },
      'first-seed': { type: 'string', default: '1' },
      seconds: { type: 'string', default: '60' },
      only: { type: 'string' },
      out: { type: 'string', default: '.verify' },
      'apply-only': { type: 'boolean', default: false },
    },
  });
  const names = values.only?.split(',') ?? PLANTED_FAULTS.map(({ name }) => name);
  const [seeds, firstSeed, seconds] = [values.seeds, values['first-seed'], values.seconds].map(
    Number,
  );
  mkdirSync(values.out, { recursive: true });
  const base = copyTree();
  process.once('exit', () => rmSync(base, { recursive: true, force: true }));
  const ending = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => ending.abort());
  let isGood = true;
  for (const name of names) {
    const fault = PLANTED_FAULTS.find((one) => one.name === name);
    if (fault === undefined) throw new Error(`there is no fault ${name}`);
    const tree = plant(base, fault);
    if (values['apply-only']) {
      rmSync(tree, { recursive: true, force: true });
      continue;
    }
    const caught: (number | undefined)[] = [];
    try {
      for (let i = 0; i < (seeds ?? 0); i++) {
        const seed = `${(firstSeed ?? 1) + i}`;
        caught.push(
          await secondsUntilCaught(tree, fault, seed, seconds ?? 60, values.out, ending.signal),
        );
        if (ending.signal.aborted) return ENDED;
        process.stderr.write(`${name} seed ${seed}: ${caught.at(-1) ?? 'not caught'}\n`);
      }
    } finally {
      rmSync(tree, { recursive: true, force: true });
    }
    const times = caught.filter((time) => time !== undefined).sort((a, b) => a - b);
    const isEnough = times.length >= caught.length * CAUGHT_MIN;
    isGood &&= isEnough;
    const median = times[Math.floor(times.length / 2)] ?? '-';
    console.log(
      `| ${name} | ${times.length} of ${caught.length} | ${median} s | ${isEnough ? '' : 'NOT ENOUGH'} |`,
    );
  }
  return isGood ? 0 : 1;
}

process.exitCode = await main();
