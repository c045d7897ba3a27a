/** The actions that this runner does itself. */
export const BUILT_IN_NAMES = [
  'actions/checkout',
  'actions/upload-artifact',
  'actions/download-artifact',
  'actions/cache',
  'actions/cache/restore',
  'actions/cache/save',
  'actions/setup-node',
  'actions/setup-python',
  'actions/setup-go',
  'astral-sh/setup-uv',
  'pnpm/action-setup',
] as const;
export type BuiltInName = (typeof BUILT_IN_NAMES)[number];

type Reference = { readonly repository: string; readonly path: string };

/** Which of them a reference names; letter case does not count. */
export function builtInName({ repository, path }: Reference): BuiltInName | undefined {
  const name = (path === '' ? repository : `${repository}/${path}`).toLowerCase();
  return BUILT_IN_NAMES.find((one) => one === name);
}

export function isBuiltIn(reference: Reference): boolean {
  return builtInName(reference) !== undefined;
}
