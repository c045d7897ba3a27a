import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { CelQuestion } from './draft.ts';

/* What the peers say to each question: by a program that Go builds, or as it is kept in answers.txt. */

const SAID = ['true', 'false', 'error', 'invalid'] as const;
/** What a peer comes to; `invalid`: it takes no such condition. */
export type PeerSaid = (typeof SAID)[number];
export type PeerAnswer = {
  readonly openfga: PeerSaid;
  readonly spicedb: PeerSaid;
  /** Why, where there is more to say; none of those that are kept. */
  readonly messages: readonly string[];
};

const folder = import.meta.dirname;
const KEPT = path.join(folder, 'answers.txt');
const LINE = 100;
const OUTPUT_MAX = 64 * 1_048_576;

/**
 * The program that asks cel-go, built once for its sources into a folder of its own below the system's temporary
 * one. Undefined where Go is not here. Errors: throws what Go says where it cannot be built.
 */
export function celGoProgram(): string | undefined {
  const go = ['go', '/usr/local/go/bin/go'].find(
    (command) => spawnSync(command, ['version'], { stdio: 'ignore' }).status === 0,
  );
  if (go === undefined) return undefined;
  const sources = readdirSync(folder).filter((name) => /\.go$|^go\./.test(name));
  const hash = createHash('sha256');
  for (const name of sources.toSorted()) hash.update(readFileSync(path.join(folder, name)));
  const home = path.join(tmpdir(), `cel-go-${hash.digest('hex').slice(0, 16)}`);
  const program = path.join(home, 'celgo');
  if (existsSync(program)) return program;
  mkdirSync(home, { recursive: true });
  const built = spawnSync(go, ['build', '-o', program, '.'], {
    cwd: folder,
    env: { ...process.env, GOFLAGS: '-mod=readonly' },
    encoding: 'utf8',
  });
  if (built.status !== 0) throw new Error(`the program could not be built: ${built.stderr}`);
  return program;
}

/** Asks the program, one answer for each question. Errors: throws where it ends early. */
export function askPeers(program: string, questions: readonly CelQuestion[]): PeerAnswer[] {
  const input = questions.map((question) => `${JSON.stringify(question)}\n`).join('');
  const ran = spawnSync(program, { input, encoding: 'utf8', maxBuffer: OUTPUT_MAX });
  if (ran.status !== 0) throw new Error(`the program failed: ${ran.stderr}`);
  return ran.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as PeerAnswer);
}

/** What the first line of answers.txt says of the questions that it answers. */
function hashOf(questions: readonly CelQuestion[]): string {
  return createHash('sha256').update(JSON.stringify(questions)).digest('hex');
}

/**
 * The answers as answers.txt has them: a hexadecimal digit each, 4 × what OpenFGA says + what SpiceDB says.
 */
export function textOfAnswers(
  questions: readonly CelQuestion[],
  answers: readonly PeerAnswer[],
): string {
  const digits = answers
    .map(({ openfga, spicedb }) => (4 * SAID.indexOf(openfga) + SAID.indexOf(spicedb)).toString(16))
    .join('');
  const lines = digits.match(new RegExp(`.{1,${LINE}}`, 'g')) ?? [];
  return [hashOf(questions), ...lines, ''].join('\n');
}

/** Keeps the answers of the peers. */
export function keepAnswers(text: string): void {
  writeFileSync(KEPT, text);
}

/** The text of answers.txt. */
export function keptText(): string {
  return readFileSync(KEPT, 'utf8');
}

/** The answers that are kept. Errors: throws where they are those of other questions. */
export function keptAnswers(questions: readonly CelQuestion[]): PeerAnswer[] {
  const [hash, ...lines] = keptText().split('\n');
  if (hash !== hashOf(questions)) {
    throw new Error(
      'the questions have changed: RECORD_CEL_GO=1 npx vitest run --project host test/language/cel-go',
    );
  }
  return Array.from(lines.join('')).map((digit) => {
    const both = Number.parseInt(digit, 16);
    const said = (at: number): PeerSaid => SAID[at % 4] ?? 'invalid';
    return { openfga: said(both >> 2), spicedb: said(both), messages: [] };
  });
}
