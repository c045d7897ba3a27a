import type { JsonValue } from '../../shared/json.ts';

type System = 'linux' | 'macos' | 'windows';

/** Labels that name an operating system: those of hosted runners and the ones every self-hosted runner has. */
const SYSTEM_OF_LABEL: readonly (readonly [RegExp, System])[] = [
  [/^ubuntu(?:-|$)/i, 'linux'],
  [/^linux$/i, 'linux'],
  [/^macos(?:-|$)/i, 'macos'],
  [/^windows(?:-|$)/i, 'windows'],
];
/** Labels that name an architecture: those of hosted runners by their ends, and those of self-hosted ones. */
const ARCHITECTURE_OF_LABEL: readonly (readonly [RegExp, NodeJS.Architecture])[] = [
  [/^arm64$/i, 'arm64'],
  [/^(?:ubuntu|windows|macos)-(?:.*-)?arm(?:64)?$/i, 'arm64'],
  [/^arm$/i, 'arm'],
  [/^x64$/i, 'x64'],
  [/^(?:ubuntu|windows|macos)-.*-(?:x64|intel)$/i, 'x64'],
];
const SYSTEM_OF_PLATFORM: Readonly<Partial<Record<NodeJS.Platform, System>>> = {
  linux: 'linux',
  darwin: 'macos',
  win32: 'windows',
};

/** The labels of an evaluated `runs-on`: a text, a list, or `{group, labels}`. */
export function labelsOf(runsOn: JsonValue): readonly string[] {
  if (Array.isArray(runsOn)) return (runsOn as readonly JsonValue[]).flatMap(labelsOf);
  if (typeof runsOn === 'object' && runsOn !== null) {
    return labelsOf((runsOn as { readonly [key: string]: JsonValue })['labels'] ?? null);
  }
  return runsOn === null || runsOn === '' ? [] : [String(runsOn)];
}

/** The first label that asks for another operating system than `platform` (§2.10). */
export function foreignLabel(
  labels: readonly string[],
  platform: NodeJS.Platform,
): string | undefined {
  const host = SYSTEM_OF_PLATFORM[platform];
  return labels.find((label) => {
    const system = SYSTEM_OF_LABEL.find(([pattern]) => pattern.test(label))?.[1];
    return system !== undefined && system !== host;
  });
}

/**
 * Text about the first label that names another architecture than `own`; undefined where none does. The job
 * runs all the same: most of what jobs do is the same on each.
 */
export function architectureNotice(labels: readonly string[], own: string): string | undefined {
  for (const label of labels) {
    const wanted = ARCHITECTURE_OF_LABEL.find(([pattern]) => pattern.test(label))?.[1];
    if (wanted === undefined || wanted === own) continue;
    return `The job asks for '${label}', which is ${wanted}: it runs on this machine all the same, which is ${own}`;
  }
  return undefined;
}
