import { type Dirent, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { type Git, gitFailure } from '../git/run-git.ts';
import type { Repository } from './repository.ts';
import { lookAt, readSmall } from './small-file.ts';

/** A branch, tag, remote-tracking branch, note or replacement of a repository. */
export type ProjectRef = {
  readonly name: string;
  readonly sha: string;
  /** The commit (or other object) that an annotated tag ends at. */
  readonly peeled?: string | undefined;
};

export type ProjectRefs = {
  /** Sorted by name, as git sorts: by bytes. */
  readonly refs: readonly ProjectRef[];
  /** Refs that stand for others, such as refs/remotes/origin/HEAD. */
  readonly symbolic: ReadonlyMap<string, string>;
  /** Whether a ref without `peeled` is known to be no annotated tag. */
  readonly isPeeled: boolean;
};

/** Those that commands of a workflow look at. Not the stash, bisections, or what runs left. */
const NAMESPACES: readonly string[] = ['heads', 'notes', 'remotes', 'replace', 'tags'];
const PREFIXES: readonly string[] = NAMESPACES.map((name) => `refs/${name}/`);
const SHA = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;
const PACKED_LINE = /^([0-9a-f]{40}(?:[0-9a-f]{24})?) (refs\/.+)$/;
/** Files that are read before others get a turn. */
const READS_AT_ONCE = 200;

/** Refs kept in tables (git 2.45 and newer), which only git reads. */
export function hasRefTables({ commonDir }: Repository): boolean {
  return lookAt(join(commonDir, 'reftable')) !== undefined;
}

/**
 * The refs of a repository that a run gets. Cost: one file for each ref that is not packed; one process
 * where refs are kept in tables. Errors: GIT_FAILED.
 */
export async function readProjectRefs(git: Git, repository: Repository): Promise<ProjectRefs> {
  if (hasRefTables(repository)) return listRefs(git);
  const { commonDir } = repository;
  const packed = readPacked(commonDir);
  const loose = await readLoose(commonDir);
  const refs = new Map(packed.refs);
  for (const ref of loose.refs) refs.set(ref.name, ref);
  for (const name of loose.symbolic.keys()) refs.delete(name);
  return {
    refs: sorted(refs.values()),
    symbolic: loose.symbolic,
    isPeeled: packed.isPeeled && loose.refs.every(({ name }) => !name.startsWith('refs/tags/')),
  };
}

async function listRefs(git: Git): Promise<ProjectRefs> {
  const format = '%(refname)%00%(objectname)%00%(*objectname)%00%(symref)';
  const args = ['for-each-ref', `--format=${format}`, '--', ...PREFIXES];
  const result = await git.tryRun(args);
  if (result.exitCode !== 0) throw gitFailure(args, result);
  const refs: ProjectRef[] = [];
  const symbolic = new Map<string, string>();
  for (const line of result.stdout.toString('utf8').split('\n')) {
    const [name = '', sha = '', peeled = '', target = ''] = line.split('\0');
    if (target !== '') symbolic.set(name, target);
    else if (SHA.test(sha)) refs.push({ name, sha, ...(peeled === '' ? {} : { peeled }) });
  }
  return { refs: sorted(refs), symbolic, isPeeled: true };
}

function readPacked(commonDir: string): {
  readonly refs: ReadonlyMap<string, ProjectRef>;
  readonly isPeeled: boolean;
} {
  const text = readSmall(join(commonDir, 'packed-refs'))?.toString('utf8') ?? '';
  const refs = new Map<string, ProjectRef>();
  let last: ProjectRef | undefined;
  for (const line of text.split('\n')) {
    if (line.startsWith('^') && last !== undefined) {
      refs.set(last.name, { ...last, peeled: line.slice(1) });
      continue;
    }
    const [, sha = '', name = ''] = PACKED_LINE.exec(line) ?? [];
    last = isTaken(name) ? { name, sha } : undefined;
    if (last !== undefined) refs.set(name, last);
  }
  const isPeeled = text === '' || /^# pack-refs with:.* fully-peeled /.test(text);
  return { refs, isPeeled };
}

async function readLoose(commonDir: string): Promise<{
  readonly refs: readonly ProjectRef[];
  readonly symbolic: ReadonlyMap<string, string>;
}> {
  const refs: ProjectRef[] = [];
  const symbolic = new Map<string, string>();
  const names = NAMESPACES.flatMap((name) => namesBelow(commonDir, `refs/${name}`));
  for (const [index, name] of names.entries()) {
    if (index % READS_AT_ONCE === READS_AT_ONCE - 1) await setImmediate();
    const text = readSmall(join(commonDir, name))?.toString('utf8').trim() ?? '';
    const target = /^ref: (refs\/\S+)$/.exec(text)?.[1];
    if (target !== undefined) symbolic.set(name, target);
    else if (SHA.test(text)) refs.push({ name, sha: text });
  }
  return { refs, symbolic };
}

/** Files below a folder of refs; what git passes over there is passed over. */
function namesBelow(commonDir: string, folder: string): readonly string[] {
  return entriesOf(join(commonDir, folder)).flatMap((entry): readonly string[] => {
    if (entry.name.startsWith('.') || entry.name.endsWith('.lock')) return [];
    const name = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return namesBelow(commonDir, name);
    return entry.isFile() && isTaken(name) ? [name] : [];
  });
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // It has never been needed, or git has just removed it.
    return [];
  }
}

function isTaken(name: string): boolean {
  return PREFIXES.some((prefix) => name.startsWith(prefix)) && !/[\0-\u0020\u007f]/.test(name);
}

function sorted(refs: Iterable<ProjectRef>): readonly ProjectRef[] {
  return [...refs].toSorted((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));
}

/** The content of a file `packed-refs` with these refs, which must be sorted. */
export function packedRefsText(refs: readonly ProjectRef[], isPeeled: boolean): string {
  const lines = refs.map(({ name, sha, peeled }) =>
    peeled === undefined ? `${sha} ${name}\n` : `${sha} ${name}\n^${peeled}\n`,
  );
  const traits = isPeeled ? 'peeled fully-peeled sorted' : 'sorted';
  return `# pack-refs with: ${traits} \n${lines.join('')}`;
}
