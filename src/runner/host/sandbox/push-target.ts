import { type Dirent, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AppError } from '../../../shared/app-error.ts';
import type { PushedRef } from '../../model/storage.ts';
import type { Git } from '../git/run-git.ts';
import { configText, type GitSetting } from './git-settings.ts';
import { alternatesText } from './object-stores.ts';
import { packedRefsText, type ProjectRef, type ProjectRefs } from './project-refs.ts';
import { pushedRefsPrefix } from './run-refs.ts';
import { lookAt, readSmall } from './small-file.ts';

/** A part of an address, shown by git when it says that it cannot push there. */
const REFUSED = 'to-push-there-set-RUNNER_ALLOW_PUSH';
/** How addresses of other machines begin. */
const FOREIGN: readonly string[] = ['https://', 'http://', 'ssh://', 'git://', 'git@'];
const PUSHED_MAX = 1_000;
const TRANSFER_TIMEOUT_MS = 10 * 60_000;
const SHA = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;
/** git-check-ref-format(1), and nothing that a refspec would read otherwise. */
const NAME = /^(?!.*(?:\.\.|\/\/|@\{|\.lock(?:\/|$)|\/\.|\.\/|\.$))[^\0-\u0020\u007f~^:?*[\\]+$/;

type TargetRequest = {
  /** Where it is made: a bare repository that takes the place of the remotes for pushes. */
  readonly target: string;
  /** Of the repository's format, and of where objects that are missing come from. */
  readonly format: readonly GitSetting[];
  readonly stores: readonly string[];
  readonly refs: ProjectRefs;
  readonly shallow: Buffer | undefined;
};

/**
 * Makes the repository that takes the pushes of a run. It begins as the remote `origin` was when the
 * project last looked (without remote: as the project is), so that a push that is no fast-forward is
 * refused as there. Its packed refs are that beginning; refs that are files of their own were pushed.
 * Errors: those of the file system.
 */
export function makePushTarget(request: TargetRequest): void {
  const { target, format, stores, refs, shallow } = request;
  for (const folder of ['objects/info', 'refs']) {
    mkdirSync(join(target, folder), { recursive: true });
  }
  const settings: readonly GitSetting[] = [
    ...format,
    { key: 'core.bare', value: 'true' },
    // Whatever the user's own settings say of hooks.
    { key: 'core.hookspath', value: '/dev/null' },
    { key: 'gc.auto', value: '0' },
    { key: 'receive.denydeletecurrent', value: 'ignore' },
    { key: 'receive.shallowupdate', value: 'true' },
  ];
  writeFileSync(join(target, 'config'), configText(settings));
  writeFileSync(join(target, 'objects/info/alternates'), alternatesText(stores));
  writeFileSync(join(target, 'packed-refs'), packedRefsText(beginning(refs), refs.isPeeled));
  if (shallow !== undefined) writeFileSync(join(target, 'shallow'), shallow);
  writeFileSync(join(target, 'HEAD'), 'ref: refs/heads/main\n');
}

function beginning({ refs }: ProjectRefs): readonly ProjectRef[] {
  const tags = refs.filter(({ name }) => name.startsWith('refs/tags/'));
  const far = refs.flatMap(({ name, sha }) => {
    const branch = /^refs\/remotes\/origin\/(.+)$/.exec(name)?.[1];
    return branch === undefined ? [] : [{ name: `refs/heads/${branch}`, sha }];
  });
  const near = refs.filter(({ name }) => name.startsWith('refs/heads/'));
  return [...(far.length > 0 ? far : near), ...tags];
}

/**
 * Settings by which pushes to any remote of the project arrive at `target`, and those to an address of
 * another machine nowhere. A project without `origin` gets one. Git rules: url.<base>.pushInsteadOf of
 * git-config(1), of which the longest that matches counts.
 */
export function pushSettings(
  target: string,
  remotes: ReadonlyMap<string, readonly string[]>,
): readonly GitSetting[] {
  const settings: GitSetting[] = [];
  for (const name of remotes.keys()) {
    settings.push({ key: `remote.${name}.pushurl`, value: target });
  }
  if (!remotes.has('origin')) {
    settings.push(
      { key: 'remote.origin.url', value: target },
      { key: 'remote.origin.fetch', value: '+refs/heads/*:refs/remotes/origin/*' },
    );
  }
  for (const address of new Set([...remotes.values()].flat())) {
    for (const spelling of [address, address.replace(/(?:\.git)?\/*$/, '')]) {
      if (spelling !== '') settings.push({ key: `url.${target}.pushinsteadof`, value: spelling });
    }
  }
  const nowhere = join(target, REFUSED);
  for (const value of FOREIGN) settings.push({ key: `url.${nowhere}/.pushinsteadof`, value });
  return settings;
}

/**
 * Takes what steps of a run have pushed to `target` so far into the project, below `refs/runner/<run>/`; hooks of the
 * project do not run. `known` is what was taken before, by name. Answers with what is taken now.
 * Errors: GIT_FAILED, RESULT_TOO_LARGE for more than 1,000 branches and tags. Cost: three folders looked
 * at when nothing was pushed, else one process.
 */
export async function takePushed(
  project: Git,
  target: string,
  runId: string,
  known: ReadonlyMap<string, string>,
): Promise<readonly PushedRef[]> {
  if (lookAt(target) === undefined) return [];
  const pushed = [
    ...looseRefs(target, 'heads', PUSHED_MAX),
    ...looseRefs(target, 'tags', PUSHED_MAX),
  ];
  if (pushed.length > PUSHED_MAX) {
    throw new AppError('RESULT_TOO_LARGE', `a run pushes at most ${PUSHED_MAX} branches and tags`);
  }
  const fresh = pushed.filter(({ name, sha }) => known.get(name) !== sha);
  if (fresh.length > 0) {
    const prefix = pushedRefsPrefix(runId);
    const specs = fresh.map(({ name }) => `+refs/${name}:${prefix}${name}`);
    const options = ['--quiet', '--no-tags', '--no-write-fetch-head', '--no-recurse-submodules'];
    await project.run(['fetch', ...options, '--end-of-options', target, ...specs], {
      timeoutMs: TRANSFER_TIMEOUT_MS,
      config: {
        'core.logAllRefUpdates': 'false',
        'fetch.prune': 'false',
        'fetch.pruneTags': 'false',
        'fetch.writeCommitGraph': 'false',
        'transfer.bundleURI': 'false',
      },
    });
  }
  return fresh;
}

function looseRefs(target: string, kind: string, countMax: number): readonly PushedRef[] {
  const found: PushedRef[] = [];
  const folders = [kind];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of entriesOf(join(target, 'refs', folder))) {
      const name = `${folder}/${entry.name}`;
      if (!NAME.test(name)) continue;
      if (entry.isDirectory()) folders.push(name);
      if (!entry.isFile() || found.length > countMax) continue;
      const sha =
        readSmall(join(target, 'refs', name))
          ?.toString('utf8')
          .trim() ?? '';
      if (SHA.test(sha)) found.push({ name, sha });
    }
  }
  return found;
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // Nothing was pushed, or a step has removed it.
    return [];
  }
}
