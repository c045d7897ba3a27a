import type { JsonValue } from '../model/run.ts';

type System = 'linux' | 'macos' | 'windows';

/** Labels that name an operating system: those of hosted runners and the ones every self-hosted runner has. */
const SYSTEM_OF_LABEL: readonly (readonly [RegExp, System])[] = [
  [/^ubuntu(?:-|$)/i, 'linux'],
  [/^linux$/i, 'linux'],
  [/^macos(?:-|$)/i, 'macos'],
  [/^windows(?:-|$)/i, 'windows'],
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
