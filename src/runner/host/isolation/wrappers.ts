import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ProgramStart } from '../../model/isolation.ts';
import { SYSTEM_PATH, systemProgram } from './system-programs.ts';

const SCRIPT = fileURLToPath(new URL('./enter-namespaces.sh', import.meta.url));

/** What a job has of the machine: its files are those of `uid`, below `dir`. */
export type Place = { readonly dir: string; readonly uid: number };

/** One way to start programs apart. */
export type Wrapper = {
  readonly needs: readonly string[];
  wrap(place: Place, program: ProgramStart): ProgramStart;
};

/** As another user, without any right of the one who starts it. For a runner that is root. */
export const otherUser: Wrapper = {
  needs: ['setpriv', 'env'],
  wrap: ({ dir, uid }, program) => ({
    file: must('setpriv'),
    args: [
      `--reuid=${uid}`,
      `--regid=${uid}`,
      '--clear-groups',
      '--bounding-set=-all',
      '--inh-caps=-all',
      '--no-new-privs',
      '--',
      ...inner(program),
    ],
    cwd: dir,
    env: { PATH: SYSTEM_PATH },
  }),
};

/**
 * In namespaces of its own, where only its own folder can be written to, only folders of the system can be
 * read, and there is no other process and no network. For a runner that is not root: the user is the same.
 */
export const ownNamespaces: Wrapper = {
  needs: ['unshare', 'setpriv', 'env', 'sh', 'mount', 'umount', 'pivot_root'],
  wrap: ({ dir }, program) => ({
    file: must('unshare'),
    args: [
      '--user',
      '--map-root-user',
      '--mount',
      '--pid',
      '--fork',
      '--kill-child',
      '--ipc',
      '--net',
      '--',
      must('sh'),
      SCRIPT,
      join(dir, 'root'),
      join(dir, 'own'),
      [join(dir, 'shared'), nodeFolder()].join('\n'),
      ...inner(program),
    ],
    cwd: dir,
    env: { PATH: SYSTEM_PATH },
  }),
};

/**
 * The environment of the program is set, and its folder entered, when the rights are gone already:
 * LD_PRELOAD or a link of the job would count before.
 */
function inner({ file, args, cwd, env }: ProgramStart): readonly string[] {
  const variables = Object.entries(env).filter(([name]) => name !== '' && !name.includes('='));
  return [
    must('env'),
    '-i',
    `--chdir=${cwd}`,
    '--',
    ...variables.map(([name, value]) => `${name}=${value}`),
    ...(file.includes('=') ? [must('env'), '--'] : []),
    file,
    ...args,
  ];
}

/** Node may be anywhere, and JavaScript actions need it. */
function nodeFolder(): string {
  return dirname(dirname(process.execPath));
}

function must(name: string): string {
  // The probe has found all of them.
  return systemProgram(name) ?? name;
}
