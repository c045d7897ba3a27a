import { fieldError } from '../../model/field-error.ts';

const TOKEN = /^v1:([1-9][0-9]{0,15}):(.*)$/s;

/** What names the page of versions below `version`; opaque to callers. */
export function pageTokenOf(projectId: string, version: number): string {
  return Buffer.from(`v1:${version}:${projectId}`).toString('base64url');
}

/** The version below which the page begins; 0 for ''. Errors: FIELD_INVALID, also of another project. */
export function versionOfPageToken(projectId: string, token: string): number {
  if (token === '') return 0;
  const [, version, ofProject] = TOKEN.exec(Buffer.from(token, 'base64url').toString()) ?? [];
  const isOurs = ofProject === projectId && pageTokenOf(projectId, Number(version)) === token;
  if (!isOurs) throw fieldError('page_token', 'is none that this project gave');
  return Number(version);
}
