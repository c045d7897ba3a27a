/**
 * HalfSipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF"; reference code of the same authors) with a key of 64
 * bits, over the low bytes of the characters of `text` from `start` on. Without the key nobody can say which texts lie
 * together, so that how long a look-up takes says nothing of what is in the table. Hot: no allocation; about 2 ns a character.
 */
export function tokenHash(text: string, start: number, key0: number, key1: number): number {
  let v0 = key0;
  let v1 = key1;
  let v2 = 0x6c796765 ^ key0;
  let v3 = 0x74656462 ^ key1;
  const length = text.length - start;
  const whole = text.length - (length & 3);
  let word = 0;
  for (let i = start; ; i += 4) {
    const isLast = i >= whole;
    if (isLast) {
      word = length << 24;
      for (let j = 0; i + j < text.length; j++) word |= (text.charCodeAt(i + j) & 0xff) << (8 * j);
    } else {
      word =
        (text.charCodeAt(i) & 0xff) |
        ((text.charCodeAt(i + 1) & 0xff) << 8) |
        ((text.charCodeAt(i + 2) & 0xff) << 16) |
        (text.charCodeAt(i + 3) << 24);
    }
    v3 ^= word;
    // Three more rounds close the sum.
    for (let rounds = isLast ? 4 : 1; rounds > 0; rounds--) {
      if (isLast && rounds === 3) {
        v0 ^= word;
        v2 ^= 0xff;
      }
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
    }
    if (isLast) return (v1 ^ v3) >>> 0;
    v0 ^= word;
  }
}
