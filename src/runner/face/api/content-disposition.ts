/** Characters that an extended value holds as they are (RFC 8187 §3.2.1). */
const PLAIN = /[A-Za-z0-9!#$&+.^_`|~-]/;

/**
 * `attachment` with the name twice (RFC 6266): plain ASCII for old clients, and UTF-8. A name with
 * quotes, line breaks or separators cannot leave its place.
 */
export function attachmentHeader(name: string): string {
  const ascii = name.replaceAll(/[^\x20-\x7e]/gu, '_').replaceAll(/["\\%/]/g, '_');
  return `attachment; filename="${ascii}"; filename*=UTF-8''${extended(name)}`;
}

function extended(name: string): string {
  let text = '';
  for (const byte of Buffer.from(name)) {
    const character = String.fromCharCode(byte);
    const isPlain = byte < 0x80 && PLAIN.test(character);
    text += isPlain ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return text;
}
