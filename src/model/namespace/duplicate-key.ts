/** A key that the text of an object has more than once. */
export type DuplicateKey = {
  readonly key: string;
  /** JSON path of the object: `$.namespaces.doc.relations`. */
  readonly path: string;
};

/** An open object or list. `keys` is null for a list, and for an object below the maximum depth. */
type KeyFrame = {
  readonly keys: Set<string> | null;
  readonly isList: boolean;
  member: string;
  index: number;
};

/**
 * Finds the outermost key that an object of `json` has twice; of several, the first. `JSON.parse` silently keeps the
 * last value. Keys are compared after decoding, whatever their spelling. The outermost key is reported, since the value
 * that it replaces is never checked: keys and paths in there could be any text. `json` must be valid. Objects more than
 * `depthMax` deep are not searched. O(length).
 */
export function findDuplicateKey(json: string, depthMax: number): DuplicateKey | undefined {
  const open: KeyFrame[] = [];
  let found: DuplicateKey | undefined;
  let depthOfFound = depthMax + 1;
  for (let at = 0; at < json.length; at++) {
    const frame = open.at(-1);
    switch (json.charAt(at)) {
      case '{': {
        const keys = open.length < depthMax ? new Set<string>() : null;
        open.push({ keys, isList: false, member: '', index: 0 });
        break;
      }
      case '[':
        open.push({ keys: null, isList: true, member: '', index: 0 });
        break;
      case '}':
      case ']':
        open.pop();
        break;
      case ',':
        if (frame !== undefined) frame.index += 1;
        break;
      case '"': {
        const end = endOfString(json, at);
        if (frame !== undefined && frame.keys !== null && isKey(json, end)) {
          const key = JSON.parse(json.slice(at, end)) as string;
          if (frame.keys.has(key) && open.length < depthOfFound) {
            found = { key, path: pathOf(open) };
            depthOfFound = open.length;
          }
          frame.keys.add(key);
          frame.member = key;
        }
        at = end - 1;
      }
    }
  }
  return found;
}

/** Offset after the end of the string that begins at `start`. */
function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (json[at] !== '"') at += json[at] === '\\' ? 2 : 1;
  return at + 1;
}

function isKey(json: string, end: number): boolean {
  let at = end;
  while (json[at] === ' ' || json[at] === '\n' || json[at] === '\r' || json[at] === '\t') at += 1;
  return json[at] === ':';
}

/** JSON path of the innermost open object. */
function pathOf(open: readonly KeyFrame[]): string {
  return open
    .slice(0, -1)
    .reduce(
      (path, { isList, index, member }) => path + (isList ? `[${index}]` : `.${member}`),
      '$',
    );
}
