import { AppError } from '../../../shared/app-error.ts';
import type { BuiltInCall } from './built-in-call.ts';
import { type BuiltInName, builtInName } from './built-in-inputs.ts';
import { runCache, runCacheRestore, runCacheSave } from './cache-action.ts';
import { runCheckout } from './checkout.ts';
import { runDownloadArtifact } from './download-artifact.ts';
import { runUploadArtifact } from './upload-artifact.ts';

type BuiltInAction = (call: BuiltInCall) => Promise<boolean>;

/** Those that set up tools load much, and are loaded when a job asks for one. */
const BUILT_INS: Readonly<Record<BuiltInName, BuiltInAction>> = {
  'actions/checkout': runCheckout,
  'actions/upload-artifact': runUploadArtifact,
  'actions/download-artifact': runDownloadArtifact,
  'actions/cache': runCache,
  'actions/cache/restore': runCacheRestore,
  'actions/cache/save': runCacheSave,
  'actions/setup-node': async (call) => (await import('./setup-node.ts')).runSetupNode(call),
  'actions/setup-python': async (call) => (await import('./setup-python.ts')).runSetupPython(call),
  'actions/setup-go': async (call) => (await import('./setup-go.ts')).runSetupGo(call),
  'astral-sh/setup-uv': async (call) => (await import('./setup-uv.ts')).runSetupUv(call),
  'pnpm/action-setup': async (call) => (await import('./setup-pnpm.ts')).runSetupPnpm(call),
};

/** Runs a built-in action. Returns whether it succeeded. Errors: those of the action, typed. */
export async function runBuiltIn(
  reference: { readonly repository: string; readonly path: string },
  call: BuiltInCall,
): Promise<boolean> {
  const name = builtInName(reference);
  if (name === undefined) throw new AppError('NOT_FOUND', 'There is no such built-in action');
  return await BUILT_INS[name](call);
}
