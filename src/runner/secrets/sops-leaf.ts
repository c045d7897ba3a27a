import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/** SOPS's own length, longer than usual for GCM (getsops/sops aes/cipher.go). */
const NONCE_BYTES = 32;
const NONCE_BYTES_MIN = 12;
const TAG_BYTES = 16;
const LEAF = /^ENC\[AES256_GCM,data:([^,\]]+),iv:([^,\]]+),tag:([^,\]]+),type:([a-z]+)\]$/;

/** Types of values that a JSON file can hold; what the plain bytes of each look like. */
const PLAIN_FORM: Readonly<Record<string, RegExp>> = {
  str: /^[\s\S]*$/,
  bytes: /^[\s\S]*$/,
  int: /^[+-]?\d+$/,
  float: /^[+-]?(?:\d|\.|Inf|NaN)[\d.eE+-]*$/,
  bool: /^(?:True|False|true|false)$/,
  time: /^\d{4}-\d{2}-\d{2}T/,
};

/**
 * Encrypts a string as SOPS does: `ENC[AES256_GCM,data:…,iv:…,tag:…,type:str]`, bound to `context`.
 * The empty string stays as it is, there too.
 */
export function sealLeaf(dataKey: Buffer, context: string, plain: string): string {
  if (plain === '') return '';
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', dataKey, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(context));
  const data = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()]);
  const parts = [data, nonce, cipher.getAuthTag()].map((part) => part.toString('base64'));
  return `ENC[AES256_GCM,data:${parts[0]},iv:${parts[1]},tag:${parts[2]},type:str]`;
}

/**
 * The plain bytes of an encrypted leaf: the text of its value, number or not.
 * Errors: TypeError without the value, for anything that does not decrypt.
 */
export function openLeaf(dataKey: Buffer, context: string, leaf: string): Buffer {
  if (leaf === '') return Buffer.alloc(0);
  const parts = LEAF.exec(leaf);
  if (parts === null) throw new TypeError('a value is not encrypted as SOPS does');
  const [data, nonce, tag] = [parts[1], parts[2], parts[3]].map(strictBase64) as [
    Buffer,
    Buffer,
    Buffer,
  ];
  if (nonce.length < NONCE_BYTES_MIN || tag.length !== TAG_BYTES) {
    throw new TypeError('a nonce or tag has the wrong length');
  }
  const plain = opened(dataKey, context, { data, nonce, tag });
  const form = PLAIN_FORM[parts[4] ?? ''];
  if (form === undefined || !form.test(plain.toString('utf8'))) {
    throw new TypeError('a value is not of its type');
  }
  return plain;
}

/**
 * The bytes that SOPS feeds its MAC for an opened leaf. It parses numbers and booleans and writes them anew, so `1.10`
 * counts as `1.1`. Source: getsops/sops, aes/cipher.go (Decrypt) and sops.go (ToBytes).
 */
export function macBytesOf(leaf: string, plain: Buffer): Buffer {
  const text = plain.toString('utf8');
  switch (LEAF.exec(leaf)?.[4]) {
    case 'int':
      return Buffer.from(BigInt(text).toString());
    case 'float':
      return Buffer.from(floatText(text));
    case 'bool':
      return Buffer.from(text.toLowerCase() === 'true' ? 'True' : 'False');
    default:
      return plain;
  }
}

/** The bytes of the MAC for a number that stands unencrypted: integers of 64 bits as they are, others as floats. */
export function plainNumberText(text: string): string {
  if (/^-?\d+$/.test(text)) {
    const integer = BigInt(text);
    if (BigInt.asIntN(64, integer) === integer) return integer.toString();
  }
  return floatText(text);
}

/** A float as Go's strconv.FormatFloat(…, 'f', -1, 64) writes it: the fewest digits and no exponent. */
function floatText(text: string): string {
  const number = Number(text);
  // Inf and NaN are no numbers of JSON.
  if (!Number.isFinite(number)) return text;
  const [mantissa = '', exponent] = String(number).split('e');
  if (exponent === undefined) return Object.is(number, -0) ? '-0' : mantissa;
  const sign = mantissa.startsWith('-') ? '-' : '';
  const [whole = '', fraction = ''] = mantissa.replace('-', '').split('.');
  const shift = Number(exponent);
  return shift < 0
    ? `${sign}0.${'0'.repeat(-shift - 1)}${whole}${fraction}`
    : `${sign}${whole}${fraction.padEnd(shift, '0')}`;
}

function opened(
  dataKey: Buffer,
  context: string,
  sealed: { readonly data: Buffer; readonly nonce: Buffer; readonly tag: Buffer },
): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', dataKey, sealed.nonce, {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(Buffer.from(context));
  decipher.setAuthTag(sealed.tag);
  try {
    return Buffer.concat([decipher.update(sealed.data), decipher.final()]);
  } catch (error) {
    throw new TypeError('a value cannot be decrypted: it was changed or moved', { cause: error });
  }
}

/** Node takes any text for base64; a changed last digit would go unnoticed. */
function strictBase64(text: string | undefined): Buffer {
  const bytes = Buffer.from(text ?? '', 'base64');
  if (bytes.toString('base64') !== text) throw new TypeError('a value is not base64');
  return bytes;
}
