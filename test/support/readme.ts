import { readFileSync } from 'node:fs';

/**
 * The shell commands of a section of a document as they are written, one text for each block.
 * Errors: throws when there is no such section, or none with a block.
 */
export function shellBlocks(heading: string, path = 'README.md'): readonly string[] {
  const readme = readFileSync(path, 'utf8');
  const start = readme.indexOf(`\n## ${heading}\n`) + 1;
  const end = readme.indexOf('\n## ', start);
  const section = start === 0 ? '' : readme.slice(start, end === -1 ? undefined : end + 1);
  const blocks = [...section.matchAll(/^```sh\n([\s\S]*?)^```/gm)].map(([, block]) => block ?? '');
  if (blocks.length === 0) throw new Error(`${path} has no commands under "${heading}"`);
  return blocks;
}

/**
 * `text` with each `localhost:<port>` at the port that is used instead.
 * Errors: throws for a port that has none: it could be another program's.
 */
export function atPorts(text: string, ports: ReadonlyMap<number, number>): string {
  return text.replaceAll(/localhost:(\d+)/g, (address, port: string) => {
    const actual = ports.get(Number(port));
    if (actual === undefined) throw new Error(`nothing of this test is at ${address}`);
    return `localhost:${actual}`;
  });
}
