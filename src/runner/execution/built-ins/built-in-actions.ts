import { AppError } from '../../../shared/app-error.ts';
import type { BuiltInCall } from './built-in-call.ts';
import { runCache, runCacheRestore, runCacheSave } from './cache-action.ts';
import { runCheckout } from './checkout.ts';
import { runDownloadArtifact } from './download-artifact.ts';
import { runSetupNode } from './setup-node.ts';
import { runUploadArtifact } from './upload-artifact.ts';

type BuiltIn = (call: BuiltInCall) => Promise<boolean>;
type Reference = { readonly repository: string; readonly path: string };

/** What this runner does itself, because there is no network to take the actions from. */
const BUILT_INS: ReadonlyMap<string, BuiltIn> = new Map([
  ['actions/checkout', runCheckout],
  ['actions/upload-artifact', runUploadArtifact],
  ['actions/download-artifact', runDownloadArtifact],
  ['actions/cache', runCache],
  ['actions/cache/restore', runCacheRestore],
  ['actions/cache/save', runCacheSave],
  ['actions/setup-node', runSetupNode],
]);

export function isBuiltIn(reference: Reference): boolean {
  return BUILT_INS.has(nameOf(reference));
}

/** Runs a built-in action. Returns whether it succeeded. Errors: those of the action, typed. */
export async function runBuiltIn(reference: Reference, call: BuiltInCall): Promise<boolean> {
  const builtIn = BUILT_INS.get(nameOf(reference));
  if (builtIn === undefined) throw new AppError('NOT_FOUND', 'There is no such built-in action');
  return await builtIn(call);
}

function nameOf({ repository, path }: Reference): string {
  return (path === '' ? repository : `${repository}/${path}`).toLowerCase();
}
