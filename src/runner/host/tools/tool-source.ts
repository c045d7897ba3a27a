import { AppError } from '../../../shared/app-error.ts';
import type { Installed } from './installed-tools.ts';
import { newestFirst, pickVersion, semver, type VersionWish } from './tool-version.ts';
import type { ProbeAnswer } from './version-probe.ts';

/** Programs that do not run are named up to this number. */
const BROKEN_MAX = 3;

/** A tool that is at hand. */
export type ToolAtHand = {
  readonly version: string;
  readonly program: string;
  readonly prefix: string;
  readonly source: string;
};

/** How tools of one kind are found and got. */
export type ToolKind = {
  /** For people: `Node`. */
  readonly title: string;
  installed(): readonly Installed[];
  /** The version that a program says it is, or why it does not work. */
  probe(program: string): Promise<ProbeAnswer>;
  /** Why none can be got; undefined when they can. */
  whyNoInstall(): string | undefined;
  /** What can be got, as semver. Errors: UPSTREAM_ERROR. */
  available(signal: AbortSignal | undefined): Promise<readonly string[]>;
  /** Errors: UPSTREAM_ERROR, CANCELLED. */
  install(version: string, signal: AbortSignal | undefined): Promise<ToolAtHand>;
};

/** How whoever waits for a tool stops it, and hears of it. */
export type ToolProgress = {
  readonly signal?: AbortSignal | undefined;
  /** Gets what takes its time, a line each. */
  readonly say?: ((text: string) => void) | undefined;
};

export type ToolRequest = ToolProgress & {
  readonly wish: VersionWish;
  /** A newer one that can be got goes before one that is here. */
  readonly isLatestWanted?: boolean | undefined;
};

/**
 * A tool that is what was asked for: the newest that is here, else the newest that can be got.
 * Errors: NOT_FOUND, which says what was asked for, what is here and why no other can be had. Never another version.
 */
export async function findOrGet(kind: ToolKind, request: ToolRequest): Promise<ToolAtHand> {
  const { wish, isLatestWanted = false, signal, say } = request;
  const { tools: here, broken } = await lookAround(kind);
  const versions = here.map(({ version }) => version);
  const best = pickVersion(versions, wish);
  const atHand = here.find(({ version }) => version === best);
  if (atHand !== undefined && !wish.isNewest && !isLatestWanted) return atHand;
  const refused = kind.whyNoInstall();
  if (refused !== undefined) {
    if (atHand !== undefined && !wish.isNewest) return atHand;
    throw notFound(kind, wish, { versions, broken }, refused);
  }
  say?.(
    atHand === undefined
      ? `${kind.title} '${wish.text}' is not here: asking what there is to install`
      : `${kind.title} ${atHand.version} is here: asking whether there is a newer one`,
  );
  try {
    // A registry may have what its list does not name.
    const target =
      pickVersion(await kind.available(signal), wish) ?? semver().valid(wish.range) ?? undefined;
    if (target === undefined) {
      if (atHand !== undefined) return atHand;
      throw new AppError('UPSTREAM_ERROR', 'the registry has none either');
    }
    const same = here.find(({ version }) => version === target);
    if (same !== undefined) return same;
    say?.(`Installing ${kind.title} ${target}`);
    return await installed(kind, target, signal);
  } catch (error) {
    if (!(error instanceof AppError) || error.reason === 'CANCELLED') throw error;
    // What is here is what was asked for, only perhaps not the newest.
    if (atHand !== undefined && !wish.isNewest) return atHand;
    throw notFound(kind, wish, { versions, broken }, error.message);
  }
}

async function installed(
  kind: ToolKind,
  version: string,
  signal: AbortSignal | undefined,
): Promise<ToolAtHand> {
  const tool = await kind.install(version, signal);
  const actual = await kind.probe(tool.program);
  if (actual.version === version) return tool;
  const what =
    actual.version === undefined
      ? `does not run: ${actual.problem}`
      : `says that it is ${actual.version}`;
  const text = `what the registry has as ${version} ${what}`;
  throw new AppError('UPSTREAM_ERROR', text);
}

/** Every tool of the kind that is here and runs, in the order in which places are preferred. */
export async function toolsHere(kind: ToolKind): Promise<ToolAtHand[]> {
  return (await lookAround(kind)).tools;
}

type Surroundings = {
  readonly tools: ToolAtHand[];
  /** What is here and does not run: its program, and why. */
  readonly broken: readonly string[];
};

async function lookAround(kind: ToolKind): Promise<Surroundings> {
  const tools: ToolAtHand[] = [];
  const broken: string[] = [];
  const asked = kind
    .installed()
    .map(async (one) => ({ ...one, ...(await kind.probe(one.program)) }));
  for (const answer of await Promise.all(asked)) {
    const { version, program, prefix, source } = answer;
    if (version !== undefined) tools.push({ version, program, prefix, source });
    else if ('problem' in answer) broken.push(`${program} (${source}): ${answer.problem}`);
  }
  return { tools, broken };
}

function notFound(
  kind: ToolKind,
  wish: VersionWish,
  {
    versions,
    broken,
  }: { readonly versions: readonly string[]; readonly broken: readonly string[] },
  why: string,
): AppError {
  const here = newestFirst(versions);
  const list = here.length === 0 ? 'none' : here.join(', ');
  const more = broken.length > BROKEN_MAX ? ` and ${broken.length - BROKEN_MAX} more` : '';
  const shown = broken.slice(0, BROKEN_MAX).join('; ');
  const idle = broken.length === 0 ? '' : ` What does not run: ${shown}${more}.`;
  const text = `${kind.title} '${wish.text}' is not to be had. Here: ${list}.${idle} It cannot be installed: ${why}`;
  return new AppError('NOT_FOUND', text, { field: `${kind.title.toLowerCase()}-version` });
}
