import { AppError } from '../../../shared/app-error.ts';
import type { BuiltInCall } from './built-in-call.ts';
import { type BuiltInName, builtInName } from './built-in-names.ts';
import { runCache, runCacheRestore, runCacheSave } from './cache-action.ts';
import { runCheckout } from './checkout.ts';
import { runDownloadArtifact } from './download-artifact.ts';
import { runSetupGo } from './setup-go.ts';
import { runSetupNode } from './setup-node.ts';
import { runSetupPnpm } from './setup-pnpm.ts';
import { runSetupPython } from './setup-python.ts';
import { runSetupUv } from './setup-uv.ts';
import { runUploadArtifact } from './upload-artifact.ts';

type BuiltIn = (call: BuiltInCall) => Promise<boolean>;

const BUILT_INS: Readonly<Record<BuiltInName, BuiltIn>> = {
  'actions/checkout': runCheckout,
  'actions/upload-artifact': runUploadArtifact,
  'actions/download-artifact': runDownloadArtifact,
  'actions/cache': runCache,
  'actions/cache/restore': runCacheRestore,
  'actions/cache/save': runCacheSave,
  'actions/setup-node': runSetupNode,
  'actions/setup-python': runSetupPython,
  'actions/setup-go': runSetupGo,
  'astral-sh/setup-uv': runSetupUv,
  'pnpm/action-setup': runSetupPnpm,
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
