import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compile, emptyStage, packStage, ROOT, useOwnConfig } from './stage.ts';

/** Messages that the client speaks. Here it imports them from SHARED_TYPES; its package has them in src/gen. */
const GENERATED = ['gatehouse', 'google', 'workspace'];
const SHARED_TYPES = '../../../src/gen/';

/** Leaves `@gatehouse/client` in the folder `out`. Throws where it does not compile. */
export function packClient(out: string): void {
  const stage = emptyStage(out, 'client');
  cpSync(join(ROOT, 'clients/typescript'), stage, { recursive: true });
  for (const name of readdirSync(join(stage, 'src'))) {
    if (name.endsWith('.ts')) importOwnTypes(join(stage, 'src', name));
  }
  for (const name of GENERATED) {
    cpSync(join(ROOT, 'src/gen', name), join(stage, 'src/gen', name), { recursive: true });
  }
  useOwnConfig(stage);
  compile(stage);
  packStage(stage);
}

function importOwnTypes(path: string): void {
  writeFileSync(path, readFileSync(path, 'utf8').replaceAll(`'${SHARED_TYPES}`, "'./gen/"));
}
