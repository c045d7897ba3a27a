import { copyFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { packEngine } from '../../scripts/pack/pack-engine.ts';
import { folderForPackages, installPackage } from './installed-package.ts';

const EXAMPLES = resolve(import.meta.dirname, '../../clients/engine/examples');

/** What examples/check.mjs prints. */
export const PRINTED = `ann: true
ben: {"allowed":false,"undecided":true,"reason":"condition"}
ben: true
missing: ip
failures: 0
RELATION_UNKNOWN query.relation: the model has no relation "viewr" in the namespace "doc"; did you mean "viewer"?
`;

/** Packs @gatehouse/engine, and installs it into an empty folder beside its examples. The caller removes it. */
export async function installEngine(): Promise<string> {
  const packed = folderForPackages();
  packEngine(packed);
  const folder = await installPackage(join(packed, 'gatehouse-engine-0.1.0.tgz'));
  rmSync(packed, { recursive: true });
  for (const name of ['check.mjs', 'page.html']) {
    copyFileSync(join(EXAMPLES, name), join(folder, name));
  }
  return folder;
}
