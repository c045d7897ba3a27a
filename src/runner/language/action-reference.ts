import { AppError } from '../../shared/app-error.ts';

/** An action of another repository, or a workflow of one. */
export type RemoteReference = {
  readonly kind: 'remote';
  /** `owner/repo`. */
  readonly repository: string;
  /** Within the repository, '' for its root. */
  readonly path: string;
  readonly ref: string;
};

/** What a `uses:` names. */
export type ActionReference =
  | { readonly kind: 'image'; readonly image: string }
  | { readonly kind: 'local'; readonly path: string; readonly isOwnRepository: boolean }
  | RemoteReference;

const IMAGE_PREFIX = 'docker://';
const REMOTE = /^([\w.-]+)\/([\w.-]+)((?:\/[^@]+)?)@(.+)$/;

/** Errors: INVALID_WORKFLOW for a text that names no action. */
export function parseUses(uses: string): ActionReference {
  if (uses.startsWith(IMAGE_PREFIX))
    return { kind: 'image', image: uses.slice(IMAGE_PREFIX.length) };
  if (uses.startsWith('./') || uses === '.') {
    return { kind: 'local', path: uses, isOwnRepository: false };
  }
  if (uses.startsWith('$/')) return { kind: 'local', path: uses.slice(2), isOwnRepository: true };
  const [, owner = '', repo = '', path = '', ref = ''] = REMOTE.exec(uses) ?? [];
  const parts = [owner, repo, ...path.split('/'), ...ref.split('/')];
  if (owner === '' || parts.includes('..') || parts.includes('.')) {
    const text = `'${uses}' names no action: it is ./path, $/path, docker://image or owner/repo[/path]@ref`;
    throw new AppError('INVALID_WORKFLOW', text, { field: 'uses' });
  }
  return {
    kind: 'remote',
    repository: `${owner}/${repo}`,
    path: path.replace(/^\/|\/$/g, ''),
    ref,
  };
}

/** As `parseUses`, undefined for what names nothing. */
export function referenceIn(uses: string): ActionReference | undefined {
  try {
    return parseUses(uses);
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}
