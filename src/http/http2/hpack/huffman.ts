/**
 * Length in bits of the code of each byte, a digit of base 36 for each (RFC 7541 appendix B). The code is canonical: codes of
 * one length follow each other in the order of their bytes, so the lengths define them. EOS, which must not occur, has the
 * last one.
 */
const LENGTHS =
  'dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6ca' +
  'd67777777777777777777777878djde6f56565666577666567655677777fbeds' +
  'kmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllmlnmnnkmmmnmmn' +
  'qqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrq';
const BYTES = 256;
const BITS_A_STEP = 8;
/** Padding is shorter than a byte. */
const PADDING_BITS_MAX = 7;
/**
 * Flag of an entry in a row of the table: the code is complete. The low byte is the decoded byte; the next one is the number
 * of bits used of the step.
 */
const IS_LEAF = 1 << 16;

/**
 * Rows of 256 entries, one for each next byte of input: 0 for no code, a leaf, or the number of the next row. Codes are
 * left-aligned in the steps, so a leaf fills all entries that begin with it.
 */
const TABLE = tableOf(Array.from(LENGTHS, (digit) => Number.parseInt(digit, 36)));

function tableOf(lengths: readonly number[]): Int32Array {
  const rows: Int32Array[] = [new Int32Array(BYTES)];
  const order = [...lengths.keys()].toSorted((a, b) => lengthAt(a) - lengthAt(b) || a - b);
  let code = 0;
  let before = lengthAt(order[0] ?? 0);
  for (const byte of order) {
    const length = lengthAt(byte);
    code *= 2 ** (length - before);
    before = length;
    enter(rows, byte, code, length);
    code += 1;
  }
  const table = new Int32Array(rows.length * BYTES);
  for (const [i, row] of rows.entries()) table.set(row, i * BYTES);
  return table;

  function lengthAt(byte: number): number {
    return lengths[byte] ?? 0;
  }
}

function enter(rows: Int32Array[], byte: number, code: number, length: number): void {
  let row = rows[0] as Int32Array;
  let left = length;
  while (left > BITS_A_STEP) {
    left -= BITS_A_STEP;
    const step = Math.floor(code / 2 ** left) % BYTES;
    if (row[step] === 0) {
      row[step] = rows.length;
      rows.push(new Int32Array(BYTES));
    }
    row = rows[row[step] as number] as Int32Array;
  }
  const spare = BITS_A_STEP - left;
  const from = (code % 2 ** left) << spare;
  row.fill(IS_LEAF | (left << BITS_A_STEP) | byte, from, from + (1 << spare));
}

/** Ratio of the longest output to its input: the shortest code has five bits. */
const GROWTH_MAX = 8 / 5;

/** Bytes that `huffmanDecode` may write for `inputBytes` bytes of input. */
export function huffmanCapacity(inputBytes: number): number {
  return Math.ceil(inputBytes * GROWTH_MAX);
}

/**
 * Hot. Decodes the bytes from `from` to `to` into `out`, which has space for `huffmanCapacity` of them. Returns how many it
 * wrote; -1 for an unknown code, EOS, or padding that is too long or not of ones. O(bytes).
 */
export function huffmanDecode(
  input: Uint8Array,
  from: number,
  to: number,
  out: Uint8Array,
): number {
  let count = 0;
  let bits = 0;
  let bitCount = 0;
  let sinceCode = 0;
  let row = 0;
  for (let at = from; at < to; at++) {
    bits = ((bits << BITS_A_STEP) | (input[at] as number)) & 0xff_ffff;
    bitCount += BITS_A_STEP;
    sinceCode += BITS_A_STEP;
    while (bitCount >= BITS_A_STEP) {
      const entry = TABLE[row + ((bits >>> (bitCount - BITS_A_STEP)) & 0xff)] as number;
      if (entry === 0) return -1;
      if (entry < IS_LEAF) {
        row = entry * BYTES;
        bitCount -= BITS_A_STEP;
        continue;
      }
      out[count] = entry & 0xff;
      count += 1;
      bitCount -= (entry >>> BITS_A_STEP) & 0xff;
      sinceCode = bitCount;
      row = 0;
    }
  }
  while (bitCount > 0) {
    const entry = TABLE[row + ((bits << (BITS_A_STEP - bitCount)) & 0xff)] as number;
    const length = (entry >>> BITS_A_STEP) & 0xff;
    if (entry === 0) return -1;
    if (entry < IS_LEAF || length > bitCount) break;
    out[count] = entry & 0xff;
    count += 1;
    bitCount -= length;
    sinceCode = bitCount;
    row = 0;
  }
  if (sinceCode > PADDING_BITS_MAX) return -1;
  const ones = (1 << bitCount) - 1;
  return (bits & ones) === ones ? count : -1;
}
