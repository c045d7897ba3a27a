import {
  block,
  END_HEADERS,
  END_STREAM,
  frame,
  PREFACE,
  settings,
  TYPE,
  uint32,
} from '../support/raw-http2.ts';

/* What hostile connections of HTTP/2 send to be remembered for as long as possible. */

export type Attack = {
  readonly parts: readonly Uint8Array[];
  readonly isReading: boolean;
  /** Nothing of it is wrong enough to end the connection. */
  readonly staysOpen: boolean;
  /** What it takes is bounded for all connections together. */
  readonly isShared?: boolean;
};

const KIB = 1_024;
const GREETING = Buffer.concat([PREFACE, settings()]);
const PSEUDO = block([
  [':method', 'POST'],
  [':scheme', 'http'],
  [':authority', 'localhost'],
  [':path', '/workspace.v1.AuthzService/Check'],
  ['content-type', 'application/json'],
]);

function integer(value: number, bits: number, first: number): Buffer {
  const most = (1 << bits) - 1;
  if (value < most) return Buffer.from([first | value]);
  const bytes = [first | most];
  let rest = value - most;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
  return Buffer.from([...bytes, rest]);
}

function text(value: string): Buffer {
  return Buffer.concat([integer(value.length, 7, 0), Buffer.from(value, 'latin1')]);
}

/** `a` five bits long each in Huffman's code: 00011. */
function coded(length: number): Buffer {
  const bytes = Buffer.alloc((length * 5) / 8);
  for (let bit = 0; bit < length * 5; bit++) {
    if (bit % 5 >= 3) bytes[bit >> 3] = (bytes[bit >> 3] as number) | (0x80 >> (bit & 7));
  }
  return Buffer.concat([integer(bytes.length, 7, 0x80), bytes]);
}

/** A field that the table takes up. */
function indexed(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0x40]), text(name), text(value)]);
}

/** A field that no table takes up, whose name is the static one of `index`. */
function named(index: number, value: string): Buffer {
  return Buffer.concat([integer(index, 4, 0), text(value)]);
}

/** An update of the table's size. */
function resized(bytes: number): Buffer {
  return integer(bytes, 5, 0x20);
}

function request(id: number, fields: readonly Uint8Array[], flags = END_HEADERS): Buffer {
  return frame(TYPE.headers, flags, id, Buffer.concat([PSEUDO, ...fields]));
}

function whole(id: number, fields: readonly Uint8Array[]): Buffer {
  return request(id, fields, END_HEADERS | END_STREAM);
}

function times<T>(count: number, make: (i: number) => T): T[] {
  return Array.from({ length: count }, (_, i) => make(i));
}

function letters(i: number, length: number): string {
  let out = '';
  for (let rest = i; out.length < length; rest = Math.floor(rest / 26)) {
    out += String.fromCharCode(97 + (rest % 26));
  }
  return out;
}

/** Of the HPACK table: how much is evicted, and with what. */
const EVICTING: Record<string, readonly Uint8Array[]> = {
  'fields evicted by later ones': times(40, (i) =>
    whole(i * 2 + 1, [...times(3, (n) => indexed('x', letters(i * 3 + n, 4_000)))]),
  ),
  'fields evicted by a table of no bytes': times(40, (i) =>
    frame(
      TYPE.headers,
      END_HEADERS | END_STREAM,
      i * 2 + 1,
      Buffer.concat([
        resized(0),
        resized(4_096),
        PSEUDO,
        ...times(3, (n) => indexed('x', letters(i * 3 + n, 4_000))),
      ]),
    ),
  ),
  'a hundred small fields': times(4, (i) =>
    whole(i * 2 + 1, [...times(113, (n) => indexed(letters(n + i * 200, 2), letters(n, 2)))]),
  ),
  'one name with other values': times(20, (i) =>
    whole(i * 2 + 1, [...times(20, (n) => indexed('x', letters(i * 20 + n, 200)))]),
  ),
  'values in Huffman code': times(40, (i) =>
    whole(i * 2 + 1, [
      ...times(3, (n) =>
        Buffer.concat([Buffer.from([0x40]), text(letters(i * 3 + n, 3)), coded(4_000)]),
      ),
    ]),
  ),
  'fields larger than the table': times(20, (i) =>
    whole(i * 2 + 1, [indexed('x', letters(i, 12 * KIB))]),
  ),
};

/** Of what is remembered beside it. */
const REMEMBERED: Record<string, readonly Uint8Array[]> = {
  'values of every static name': times(4, (i) =>
    whole(
      i * 2 + 1,
      [15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 27, 29, 30, 33, 34, 35, 36, 37, 39, 40]
        .concat([41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 58, 59, 60, 61])
        .map((index) => named(index, letters(i * 100 + index, 240))),
    ),
  ),
  'a list of 12 KiB': [whole(1, [named(58, letters(1, 12 * KIB))])],
  'a list of hundred cookies': [whole(1, [...times(90, (i) => named(32, letters(i, 120)))])],
  'a frame behind others in one read': [
    Buffer.concat([
      ...times(8, () => frame(0xbe, 0, 0, Buffer.alloc(7 * KIB))),
      whole(1, [named(5, '/x')]),
    ]),
  ],
};

const UNFINISHED: Record<string, readonly Uint8Array[]> = {
  'a header block that does not end': [
    request(1, [named(58, letters(1, 12 * KIB))], 0),
    ...times(7, (i) =>
      Buffer.concat([frame(TYPE.continuation, 0, 1, named(58, letters(i, 6 * KIB)))]),
    ),
  ],
  'a header block in pieces at the end of large reads': [
    Buffer.concat([...times(8, () => frame(0xbe, 0, 0, Buffer.alloc(7 * KIB))), request(1, [], 0)]),
  ],
  'a frame that does not end': [frame(TYPE.data, 0, 1, Buffer.alloc(16_000), 16_384)],
  'a frame of which its head alone comes': [frame(TYPE.data, 0, 1, Buffer.alloc(0), 16_384)],
  'all of it at once': [
    ...times(10, (i) =>
      whole(i * 2 + 1, [...times(100, (n) => indexed(letters(n + i * 200, 2), letters(n, 2)))]),
    ),
    ...times(2, (i) => whole(i * 2 + 41, [named(58, letters(i, 250)), named(51, letters(i, 250))])),
    frame(TYPE.headers, END_HEADERS, 101, Buffer.alloc(15_000), 16_384),
  ],
};

const STREAMS: Record<string, readonly Uint8Array[]> = {
  'streams that do not end': [
    ...times(200, (i) => request(i * 2 + 1, [named(58, 'x'.repeat(99))])),
  ],
  'streams that we reset': [
    ...times(9, (i) =>
      Buffer.concat(
        times(100, (n) => {
          const id = (i * 100 + n) * 2 + 1;
          return Buffer.concat([
            frame(
              TYPE.headers,
              END_HEADERS | 0x20,
              id,
              Buffer.concat([uint32(id), Buffer.from([0]), PSEUDO]),
            ),
          ]);
        }),
      ),
    ),
  ],
  'streams left out': times(20, (i) => whole(i * 20 + 1, [])),
  priorities: [
    Buffer.concat(times(5_000, (i) => frame(TYPE.priority, 0, i * 2 + 1, Buffer.alloc(5)))),
  ],
  settings: [Buffer.concat(times(400, () => settings([4, 65_535], [1, 0], [0xaa, 7])))],
};

/** Peers who read nothing: what we send them has filled the kernel's memory first. */
const UNREAD: Record<string, readonly Uint8Array[]> = {
  'pings whose answers nobody reads': times(60, () =>
    Buffer.concat(times(5_000, () => frame(TYPE.ping, 0, 0, Buffer.alloc(8)))),
  ),
  'refusals that nobody reads': times(100, (i) =>
    Buffer.concat(times(100, (n) => whole((i * 100 + n) * 2 + 1, []))),
  ),
  'refusals behind windows of no bytes': [
    settings([4, 0]),
    ...times(25, (i) => Buffer.concat(times(10, (n) => whole((i * 10 + n) * 2 + 1, [])))),
  ],
};

function attackOf(parts: readonly Uint8Array[], isReading: boolean, staysOpen: boolean): Attack {
  return { parts: [GREETING, ...parts], isReading, staysOpen };
}

function all(
  group: Record<string, readonly Uint8Array[]>,
  isReading: boolean,
  staysOpen: boolean,
): Record<string, Attack> {
  return Object.fromEntries(
    Object.entries(group).map(([name, parts]) => [name, attackOf(parts, isReading, staysOpen)]),
  );
}

export const ATTACKS: Readonly<Record<string, Attack>> = {
  'nothing but the greeting': attackOf([], true, true),
  ...all(EVICTING, true, true),
  ...all(REMEMBERED, true, true),
  ...Object.fromEntries(
    Object.entries(all(UNFINISHED, true, false)).map(([name, attack]) => [
      name,
      { ...attack, isShared: name.includes('header block') || name.includes('all of it') },
    ]),
  ),
  ...all(STREAMS, true, false),
  ...all(UNREAD, false, false),
};
