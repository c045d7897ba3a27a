import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { reachableFrom } from './reachable.ts';
import { compile, emptyStage, packStage, ROOT, useOwnConfig } from './stage.ts';

const ENTRY = 'library/index';
/** It is no module of its own: a browser that loads it by itself gets nothing from it. */
const SCRIPT = 'ipaddr.js';

/**
 * Leaves `@gatehouse/engine` in the folder `out`: what src/library/index.ts reaches, as JavaScript, with the declarations that the
 * public names reach. The compiler has no types of Node.js, so that what needs it does not compile. Throws where it does not.
 */
export function packEngine(out: string): void {
  const stage = emptyStage(out, 'engine');
  cpSync(join(ROOT, 'clients/engine'), stage, { recursive: true });
  const source = join(ROOT, 'src');
  for (const path of reachableFrom([join(source, `${ENTRY}.ts`)]).files) {
    cpSync(path, join(stage, 'src', relative(source, path)));
  }
  useOwnConfig(stage);
  compile(stage);
  keepDeclarations(join(stage, 'dist'));
  includeScript(join(stage, 'dist'));
  packStage(stage);
}

/** Drops the declarations of what is no part of the package's interface. */
function keepDeclarations(out: string): void {
  const kept = reachableFrom([join(out, `${ENTRY}.d.ts`)]).files;
  for (const name of globSync('**/*.d.ts', { cwd: out })) {
    const path = join(out, name);
    if (!kept.has(path)) rmSync(path);
  }
}

/** Puts ipaddr.js, with its licence, into a module of the package. */
function includeScript(out: string): void {
  const from = join(ROOT, 'node_modules', SCRIPT);
  const to = join(out, 'included');
  mkdirSync(to);
  const script = readFileSync(join(from, 'lib', SCRIPT), 'utf8');
  const licence = readFileSync(join(from, 'LICENSE'), 'utf8');
  const head = `/* ${SCRIPT}\n${licence} */\nconst module = { exports: {} };\n`;
  writeFileSync(join(to, SCRIPT), `${head}${script}\nexport default module.exports;\n`);
  const user = join(out, 'model/cel/ip-address.js');
  const text = readFileSync(user, 'utf8');
  const changed = text.replace(`from '${SCRIPT}'`, `from '../../included/${SCRIPT}'`);
  if (changed === text) throw new Error(`${user} does not import ${SCRIPT}`);
  writeFileSync(user, changed);
}
