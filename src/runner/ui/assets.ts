import { readdirSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { extname, join } from 'node:path';

type Asset = { readonly path: string; readonly contentType: string; readonly body: () => string };

/** The page's scripts are what this module is: TypeScript in a checkout, JavaScript in a package. */
const ENDING = extname(import.meta.filename);
/** Where the page's first script is. */
export const PAGE_SCRIPT = `/assets/page/client/app${ENDING}`;
const SCRIPT_TYPE = 'text/javascript; charset=utf-8';

/**
 * The files of the page, read once, at start. Its TypeScript becomes JavaScript by leaving the types
 * out, as Node does with our own, when the file is first asked for: a runner without a page open starts
 * 0.25 s of CPU sooner. The addresses mirror the folders, so that imports stay as they are.
 */
export function pageAssets(): readonly Asset[] {
  const folder = (name: string): string => join(import.meta.dirname, name);
  const css = textOf('page.css');
  const icon = textOf('icon.svg');
  return [
    ...scriptsOf(folder('client'), '/assets/page/client'),
    ...scriptsOf(folder('shared'), '/assets/page/shared'),
    ...scriptsOf(folder('../text'), '/assets/text'),
    { path: '/assets/page.css', contentType: 'text/css; charset=utf-8', body: () => css },
    { path: '/assets/icon.svg', contentType: 'image/svg+xml', body: () => icon },
  ];
}

function textOf(name: string): string {
  return readFileSync(join(import.meta.dirname, 'static', name), 'utf8');
}

function scriptsOf(directory: string, at: string): readonly Asset[] {
  return readdirSync(directory)
    .filter((name) => name.endsWith(ENDING) && !name.endsWith('.test.ts'))
    .map((name) => script(join(directory, name), `${at}/${name}`));
}

function script(file: string, path: string): Asset {
  const source = readFileSync(file, 'utf8');
  let body: string | undefined;
  return {
    path,
    contentType: SCRIPT_TYPE,
    body: () => (body ??= ENDING === '.ts' ? withoutTypes(source) : source),
  };
}

/** Node says once that it may still change the function; that is no news for whoever starts a runner. */
function withoutTypes(source: string): string {
  const emitWarning = process.emitWarning.bind(process);
  process.emitWarning = () => undefined;
  try {
    return stripTypeScriptTypes(source);
  } finally {
    process.emitWarning = emitWarning;
  }
}
