// Makes the process that imports it load this package's TypeScript faster. Node 22 takes the types out of
// every file at every start, and to do so loads a compiler first. This keeps the files without types in
// node_modules/.cache, and there too V8's code of all modules (module.enableCompileCache). What is kept of a
// file counts only while its times, size and inode are those of then: a file that changed is read anew.
// Where the folder cannot be written nothing is kept, and all works as without it. Plain JavaScript: it
// stands before all TypeScript.
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { enableCompileCache, registerHooks, stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isMainThread, threadId } from 'node:worker_threads';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const SOURCES = join(ROOT, 'src') + '/';
const SOURCES_URL = pathToFileURL(SOURCES).href;
const CACHE = join(ROOT, 'node_modules', '.cache', 'gatehouse');
/** Another Node may take the types out in another way. */
const STRIPPED = join(CACHE, `stripped-${process.version}`);

/** A thread keeps what it read this long after the first of it: by then it has loaded. */
const THREAD_KEEPS_MS = 500;

/** Files that were read anew and are not kept yet: their paths, and what is kept of them. */
const changed = new Map();

enableCompileCache(join(CACHE, 'compiled'));
registerHooks({
  resolve(specifier, context, nextResolve) {
    const { parentURL } = context;
    return specifier[0] === '.' && specifier.endsWith('.ts') && parentURL?.startsWith(SOURCES_URL)
      ? { url: new URL(specifier, parentURL).href, format: 'module', shortCircuit: true }
      : nextResolve(specifier, context);
  },
  load(url, context, nextLoad) {
    if (!url.startsWith('file:') || !url.endsWith('.ts')) return nextLoad(url, context);
    const path = fileURLToPath(url);
    if (!path.startsWith(SOURCES)) return nextLoad(url, context);
    const source = withoutTypes(path);
    // Node says what is wrong with a file better than this can.
    return source === undefined
      ? nextLoad(url, context)
      : { format: 'module', source, shortCircuit: true };
  },
});
process.on('exit', keep);

/** The file as JavaScript, its lines and columns as they are; undefined where that cannot be had. */
function withoutTypes(path) {
  const name = keptName(path);
  let mark;
  try {
    mark = markOf(path);
    const kept = readFileSync(name, 'utf8');
    if (kept.endsWith(mark)) return kept;
  } catch (error) {
    if (error?.code === undefined) throw error;
    if (mark === undefined) return undefined;
  }
  try {
    const text = quietly(() => stripTypeScriptTypes(readFileSync(path, 'utf8'))) + mark;
    // A thread that is terminated has no exit event.
    if (!isMainThread && changed.size === 0) setTimeout(keep, THREAD_KEEPS_MS).unref();
    changed.set(name, text);
    return text;
  } catch (error) {
    if (error instanceof Error) return undefined;
    throw error;
  }
}

/** What a file was when it was read; a last line of what is kept of it. */
function markOf(path) {
  const { mtimeMs, ctimeMs, size, ino } = statSync(path);
  return `\n// ${mtimeMs} ${ctimeMs} ${size} ${ino}\n`;
}

function keptName(path) {
  const name = path.slice(SOURCES.length).replaceAll('/', '+').replace(/\.ts$/, '.js');
  return join(STRIPPED, name);
}

/** Node says once that the function may still change; that is no news for whoever starts a program. */
function quietly(strip) {
  const emitWarning = process.emitWarning.bind(process);
  process.emitWarning = () => undefined;
  try {
    return strip();
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** Whole files appear under their names or none do: others may read and write them at the same time. */
function keep() {
  if (changed.size === 0) return;
  try {
    mkdirSync(STRIPPED, { recursive: true });
    for (const [name, text] of changed) {
      changed.delete(name);
      const part = `${name}.${process.pid}.${threadId}`;
      try {
        writeFileSync(part, text);
        renameSync(part, name);
      } catch (error) {
        rmSync(part, { force: true });
        throw error;
      }
    }
  } catch (error) {
    // A folder of somebody else's, or a full disk: the next start is as slow as this one.
    if (error?.code === undefined) throw error;
  }
}
