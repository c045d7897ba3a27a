/**
 * `node scripts/supply-chain/record-binaries.ts NAME=FOLDER…` records anew the files of unpacked packages in
 * binaries.json, after a change of their versions: NAME is a key there, FOLDER what `npm pack` and `tar` made. Version,
 * archive and comparison with upstream are for a person to look up and write.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { BINARY_RECORD, readBinaryRecord } from './binary-record.ts';
import { digestOfAll, listFiles, sha256Of } from './verify-binaries.mjs';

/** What is executed or loaded; of packages with thousands of files the others have one digest. */
const BINARY = /\/bin\/[^/]+$|\.(node|so|dylib)(\.|$)|\.dylib$/;

const record = readBinaryRecord();
for (const argument of process.argv.slice(2)) {
  const [name = '', folder = ''] = argument.split('=');
  const entry = record[name];
  if (entry === undefined) throw new Error(`${name} is none of ${Object.keys(record).join(', ')}`);
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    readonly name: string;
    readonly version: string;
  };
  entry.package = `${manifest.name}@${manifest.version}`;
  const paths = entry.roots.flatMap((root) => listFiles(folder, root));
  const single = paths.filter((path) => entry.rest === undefined || BINARY.test(`/${path}`));
  const others = paths.filter((path) => !single.includes(path));
  entry.files = Object.fromEntries(single.map((path) => [path, sha256Of(join(folder, path))]));
  if (entry.rest !== undefined) entry.rest = digestOfAll(folder, others);
}
writeFileSync(BINARY_RECORD, `${JSON.stringify(record, null, 2)}\n`);
