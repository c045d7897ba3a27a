import { Random } from './random-choice.ts';
import type { Method } from './random-fields.ts';
import { jsonOf } from './random-json.ts';
import { protobufOf } from './random-protobuf.ts';

const STRUCTURE = Buffer.from('"\\{}[],: \n0-etn\0');
const SEQUENCES: readonly (readonly number[])[] = [
  [0xff],
  [0xc2],
  [0xc2, 0x85],
  [0xc0, 0x80],
  [0xe2, 0x80, 0xa8],
  [0xed, 0xa0, 0x80],
  [0xef, 0xbb, 0xbf],
  [0xf4, 0x90, 0x80, 0x80],
  [0x0b, 0x0c],
  [0x80],
  [0x00],
];
const TRAILERS: readonly string[] = [
  '{}',
  ' {}',
  ' ',
  '\n',
  '\0',
  ']',
  '}',
  ',',
  ' \u{feff}',
  '"',
  'x',
];

/** One change of a body's bytes, and what it has lost behind its end. */
function damaged(random: Random, bytes: Buffer): { readonly bytes: Buffer; readonly lost: Buffer } {
  // Of long lists, more often behind them.
  const first = bytes.length > 8_000 ? bytes.length - 200 : 0;
  const at = first + random.next(bytes.length - first + 1);
  const to = Math.min(bytes.length, at + 1 + random.next(random.pick([1, 1, 40])));
  const lost = Buffer.alloc(0);
  const around = (middle: Uint8Array, from: number): Buffer =>
    Buffer.concat([bytes.subarray(0, at), middle, bytes.subarray(from)]);
  switch (random.next(8)) {
    case 0:
      return { bytes: bytes.subarray(0, at), lost: bytes.subarray(at) };
    case 1:
      return { bytes: around(Buffer.from([random.pick([...STRUCTURE])]), to), lost };
    case 2:
      return { bytes: around(Buffer.from([random.next(256)]), to), lost };
    case 3:
      return { bytes: around(Buffer.from([random.pick([...STRUCTURE])]), at), lost };
    case 4:
      return { bytes: around(Buffer.from(random.pick(SEQUENCES)), at), lost };
    case 5:
      return { bytes: around(lost, to), lost };
    case 6:
      return { bytes: Buffer.concat([bytes, Buffer.from(random.pick(TRAILERS))]), lost };
    default: {
      const flipped = Buffer.from(bytes);
      if (at < bytes.length) flipped[at] = (flipped[at] as number) ^ (1 << random.next(8));
      return { bytes: flipped, lost };
    }
  }
}

export type RandomBody = {
  readonly bytes: Buffer;
  /** Bytes with this body in the middle, between others or behind and before what belongs to neither. */
  readonly around: Buffer;
  readonly start: number;
  readonly random: Random;
};

const NEIGHBOURS: readonly Buffer[] = [
  ['', '', ' ', '\n ', '{', '{}', '"', '","x":"', '}', ']}', '\\', 'ü', '\u0085'],
  ['{"namespace":"doc","object_id":"1","relation":"viewer","subject_user_id":"u"}'],
  ['{"items":[{"namespace":"doc","object_id":"1","relation":"viewer","subject_user_id":"u"}]}'],
]
  .flat()
  .map((text) => Buffer.from(text));

/**
 * A request's body in JSON or protobuf: about half are valid, most others nearly. The same for the same seed and number;
 * written without an encoder, so that also what no encoder writes comes up.
 */
export function randomBody(
  seed: number,
  body: number,
  method: Method,
  isJson: boolean,
): RandomBody {
  const random = new Random(seed, body);
  const whole = isJson ? Buffer.from(jsonOf(random, method)) : protobufOf(random, method);
  const { bytes, lost } = random.oneIn(5)
    ? damaged(random, whole)
    : { bytes: whole, lost: Buffer.alloc(0) };
  const before = random.pick(NEIGHBOURS);
  const behind = random.pick(NEIGHBOURS);
  const around = Buffer.concat([before, bytes, lost, behind]);
  return { bytes, around, start: before.length, random };
}
