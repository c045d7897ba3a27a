import { isAbsolute, join } from 'node:path';
import { type Git, gitFailure } from '../git/run-git.ts';
import type { Repository } from './repository.ts';
import { lookAt } from './small-file.ts';

/** One setting of git. The section and the last part of the name are in lower case, as git lists them. */
export type GitSetting = { readonly key: string; readonly value: string };

/**
 * The settings of a repository that a git directory of a run adopts: how files are written (line
 * endings, links, LFS), which of them are there, where they come from. Nothing that runs a program of the
 * user but LFS, names a person, or lets somebody in. Names: git-config(1), git-lfs-config(5).
 */
const TAKEN: readonly RegExp[] = [
  /^core\.(?:filemode|symlinks|ignorecase|precomposeunicode|protecthfs|protectntfs|longpaths)$/,
  /^core\.(?:autocrlf|eol|safecrlf|checkroundtripencoding|attributesfile|excludesfile)$/,
  /^core\.(?:sparsecheckout|sparsecheckoutcone|bigfilethreshold|trustctime|checkstat|quotepath)$/,
  /^(?:index\.sparse|merge\.renormalize)$/,
  /^extensions\.(?:objectformat|partialclone)$/,
  /^filter\.lfs\.(?:clean|smudge|process|required)$/,
  /^lfs\./,
  /^remote\..+\.(?:url|fetch|tagopt|promisor|partialclonefilter)$/s,
  /^branch\..+\.(?:remote|merge)$/s,
  /^url\..+\.insteadof$/s,
];
/** Adopted where steps may push. */
const TAKEN_TO_PUSH: readonly RegExp[] = [/^remote\..+\.pushurl$/s, /^url\..+\.pushinsteadof$/s];
/** Scopes of `git config --show-scope` that belong to the repository. */
const OWN_SCOPES: ReadonlySet<string> = new Set(['local', 'worktree']);
/** A file that was changed so lately may change again without a sign of it. */
const SETTLED_MS = 2_000;

/** Reads the settings of one project; asks git again only when their files have changed. */
export class GitSettings {
  readonly #git: Git;
  #known: { readonly stamp: string; readonly settings: readonly GitSetting[] } | undefined;

  constructor(git: Git) {
    this.#git = git;
  }

  /**
   * All settings of the repository itself, in git's order, those of files that it includes too.
   * Errors: GIT_FAILED. Cost: two files looked at; one process when they have changed, or include others.
   */
  async read(repository: Repository): Promise<readonly GitSetting[]> {
    const stamp = stampOf(repository);
    if (stamp !== undefined && this.#known?.stamp === stamp) return this.#known.settings;
    const args = ['config', '-z', '--list', '--show-scope'];
    const result = await this.#git.tryRun(args);
    if (result.exitCode !== 0) throw gitFailure(args, result);
    const settings = parseScoped(result.stdout.toString('utf8'));
    const isWhole = !settings.some(({ key }) => /^include(?:if\..*)?\.path$/s.test(key));
    this.#known = stamp !== undefined && isWhole ? { stamp, settings } : undefined;
    return settings;
  }
}

/** Undefined while a change could hide in the granularity of its time. */
function stampOf({ gitDir, commonDir }: Repository): string | undefined {
  const paths = [join(commonDir, 'config'), join(gitDir, 'config.worktree')];
  const seen = paths.map(lookAt);
  const newest = Math.max(...seen.map((file) => file?.ctimeMs ?? 0));
  if (Date.now() - newest < SETTLED_MS) return undefined;
  const marks = seen.map((file) =>
    file === undefined ? '' : [file.ino, file.size, file.mtimeMs, file.ctimeMs].join(' '),
  );
  return JSON.stringify([commonDir, ...marks]);
}

/** `scope NUL key LF value NUL …`; a key without a value is true. */
function parseScoped(text: string): readonly GitSetting[] {
  const settings: GitSetting[] = [];
  const parts = text.split('\0');
  for (let index = 0; index + 1 < parts.length; index += 2) {
    const [scope = '', entry = ''] = [parts[index], parts[index + 1]];
    if (!OWN_SCOPES.has(scope)) continue;
    const end = entry.indexOf('\n');
    settings.push(
      end < 0
        ? { key: entry, value: 'true' }
        : { key: entry.slice(0, end), value: entry.slice(end + 1) },
    );
  }
  return settings;
}

/**
 * What of `settings` a run may see and use. Addresses lose the user and password in them; a rewriting of
 * addresses to one with a user is left out, since it does nothing else. O(settings).
 */
export function takenSettings(
  settings: readonly GitSetting[],
  { gitDir, commonDir }: Repository,
  mayPush: boolean,
): readonly GitSetting[] {
  const patterns = mayPush ? [...TAKEN, ...TAKEN_TO_PUSH] : TAKEN;
  const taken: GitSetting[] = [];
  for (const { key, value } of settings) {
    if (!patterns.some((pattern) => pattern.test(key))) continue;
    if (key.startsWith('url.') && withoutUser(key) !== key) continue;
    // Relative to the git directory, which is another one in the run.
    const isStore = key === 'lfs.storage' && value !== '' && !isAbsolute(value);
    const isKept = key.startsWith('core.') || key.startsWith('filter.');
    const base = gitDir === commonDir ? gitDir : commonDir;
    taken.push({
      key: key.startsWith('lfs.') ? withoutUser(key) : key,
      value: isStore ? join(base, value) : isKept ? value : withoutUser(value),
    });
  }
  return taken;
}

/**
 * An address without what lets somebody in: user and password of a URL; of ssh, where the user says which
 * account of the host is meant, the password alone. Any other text is answered as it is.
 */
export function withoutUser(text: string): string {
  return text.replaceAll(
    /([a-z][a-z0-9+.-]*):\/\/([^/@\s?#]*(?:@[^/@\s?#]*)*)@/gi,
    (_, scheme: string, user: string) => {
      const isSsh = /^(?:git\+)?ssh(?:\+git)?$/i.test(scheme);
      const name = isSsh ? user.split(':')[0] : '';
      return `${scheme}://${name === '' || name === undefined ? '' : `${name}@`}`;
    },
  );
}

/** The text of a git configuration file with these settings, in their order. */
export function configText(settings: readonly GitSetting[]): string {
  let text = '';
  let section = '';
  for (const { key, value } of settings) {
    const [first, last] = [key.indexOf('.'), key.lastIndexOf('.')];
    const name = key.slice(0, first);
    const header =
      first === last ? `[${name}]` : `[${name} "${escaped(key.slice(first + 1, last))}"]`;
    if (header !== section) text += `${header}\n`;
    section = header;
    text += `\t${key.slice(last + 1)} = ${shownValue(value)}\n`;
  }
  return text;
}

/** Plain where it can be: programs other than git look for lines such as `url = https://…`. */
function shownValue(value: string): string {
  if (/^[\w./:@+*=%,~-]+$/.test(value)) return value;
  return `"${escaped(value).replaceAll('\n', '\\n').replaceAll('\t', '\\t')}"`;
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"');
}
