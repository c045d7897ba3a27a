import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ProgramStart } from '../../model/isolation.ts';
import { lookAt } from '../sandbox/small-file.ts';

/**
 * Never the PATH of the runner or a step: what is found here is run before a job has lost the rights of
 * the runner.
 */
const FOLDERS: readonly string[] = ['/usr/bin', '/bin', '/usr/sbin', '/sbin'];
const SYSTEM_PATH = FOLDERS.join(':');

/** Where a program of the system lies; undefined when there is none. */
export function systemProgram(name: string): string | undefined {
  return FOLDERS.map((folder) => `${folder}/${name}`).find((path) => lookAt(path)?.isFile());
}

const SCRIPT = fileURLToPath(new URL('./enter-namespaces.sh', import.meta.url));

/** What a job has of the machine: its files are those of `uid`, below `dir`. */
export type WrapperPlace = { readonly dir: string; readonly uid: number };

/** One way to start programs apart. */
export type Wrapper = {
  readonly needs: readonly string[];
  wrap(place: WrapperPlace, program: ProgramStart): ProgramStart;
};

/** As another user, without any right of the one who starts it. For a runner that is root and may do no more. */
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

/** The same, in a mount namespace where only its own folder and those of the system are there. */
export const otherUserApart: Wrapper = {
  needs: ['unshare', 'setpriv', 'env', 'sh', 'mount', 'umount', 'pivot_root'],
  wrap: ({ dir, uid }, program) => ({
    file: must('unshare'),
    args: ['--mount', '--ipc', '--', ...entering(dir, String(uid)), ...inner(program)],
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
      ...entering(dir, ''),
      ...inner(program),
    ],
    cwd: dir,
    env: { PATH: SYSTEM_PATH },
  }),
};

function entering(dir: string, user: string): readonly string[] {
  // Node itself may be anywhere; of the folders around it nothing is shown.
  const shown = [join(dir, 'shared'), ...ownNode()].join('\n');
  return [must('sh'), SCRIPT, join(dir, 'root'), join(dir, 'own'), shown, user];
}

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

/** JavaScript actions need it. What lies in a folder of the system is there already. */
function ownNode(): readonly string[] {
  const isOfSystem = /^\/(?:usr|s?bin|opt|nix)\//.test(process.execPath);
  return isOfSystem ? [] : [process.execPath];
}

function must(name: string): string {
  // The probe has found all of them.
  return systemProgram(name) ?? name;
}
