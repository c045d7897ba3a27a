/** Encoded forms shorter than this say too little and would hide too much. */
const ENCODED_LENGTH_MIN = 4;
/** Below this length the parts of a value around `&` stay visible, as on GitHub. */
const AMPERSAND_PART_LENGTH_MIN = 6;
const QUOTED_LENGTH_MIN = 8;

/** Parts of structured secrets that are no secret: a lone bracket of a JSON key file. */
const BRACKETS_ONLY = /^[[\](){},;]{1,2}$/;

/**
 * Every text under which a secret may show up in a log: itself, itself trimmed, each of its lines, and
 * the encodings of each of these. The list follows the official runner (its ValueEncoders) and adds
 * hexadecimal, URL-safe base64, base64 in the middle of longer data, lower-case percent encoding,
 * ASCII-only JSON and shell quoting. Empty for a blank value.
 */
export function formsOfSecret(value: string): ReadonlySet<string> {
  const forms = new Set<string>();
  if (value.trim() === '') {
    return forms;
  }
  const plain = new Set([value, value.trim()]);
  const lines = value.split(/[\r\n]+/u);
  if (lines.length > 1) {
    for (const line of lines) {
      const text = line.trim();
      if (text !== '' && !BRACKETS_ONLY.test(text)) {
        plain.add(text);
      }
    }
  }
  for (const text of plain) {
    forms.add(text);
    for (const encoded of encodingsOf(text)) {
      if (encoded.length >= ENCODED_LENGTH_MIN) {
        forms.add(encoded);
      }
    }
  }
  return forms;
}

function encodingsOf(text: string): string[] {
  const bytes = Buffer.from(text, 'utf8');
  const hex = bytes.toString('hex');
  const json = JSON.stringify(text).slice(1, -1);
  const uri = encodeURIComponent(text.toWellFormed());
  const strictUri = uri.replace(/[!'()*]/gu, percentEncoded);
  const xml = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return [
    ...base64Forms(bytes),
    hex,
    hex.toUpperCase(),
    json,
    json.replaceAll('/', '\\/'),
    asciiJson(json),
    xml,
    xml.replaceAll('"', '&quot;'),
    xml.replaceAll('"', '&quot;').replaceAll("'", '&apos;'),
    xml.replaceAll('"', '&quot;').replaceAll("'", '&#39;'),
    uri,
    strictUri,
    lowerPercent(uri),
    lowerPercent(strictUri),
    uri.replaceAll('%20', '+'),
    strictUri.replaceAll('%20', '+'),
    encodeURI(text.toWellFormed()),
    text.replaceAll("'", "''"),
    text.replaceAll("'", String.raw`'\''`),
    text.replaceAll('"', '\\"'),
    ...unquoted(text),
    ...ampersandParts(text),
  ];
}

function percentEncoded(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}

function lowerPercent(uri: string): string {
  return uri.replaceAll(/%[0-9A-F]{2}/gu, (escape) => escape.toLowerCase());
}

function asciiJson(json: string): string {
  return json.replaceAll(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/**
 * Base64 of the bytes standing at any place of longer data: of the three ways to fall on groups of
 * three bytes, the characters that the bytes alone decide, and the ending they have at the very end.
 */
function base64Forms(bytes: Buffer): string[] {
  const forms: string[] = [];
  for (let lead = 0; lead < 3; lead += 1) {
    const encoded = Buffer.concat([Buffer.alloc(lead), bytes]).toString('base64');
    const start = Math.ceil((lead * 8) / 6);
    const inner = encoded.slice(start, Math.floor(((lead + bytes.length) * 8) / 6));
    const atEnd = encoded.slice(start);
    for (const form of [inner, atEnd, atEnd.replaceAll('=', '')]) {
      forms.push(form, form.replaceAll('+', '-').replaceAll('/', '_'));
    }
  }
  return forms;
}

function unquoted(text: string): string[] {
  const isQuoted = text.length > QUOTED_LENGTH_MIN && text.startsWith('"') && text.endsWith('"');
  return isQuoted ? [text.slice(1, -1)] : [];
}

/** PowerShell colours errors around `&`, or `&+` and one letter, which cuts a secret in two. */
function ampersandParts(text: string): string[] {
  const plusAt = text.indexOf('&+');
  const at = plusAt === -1 ? text.lastIndexOf('&') : plusAt + 1;
  if (at === -1) {
    return [];
  }
  const after = plusAt === -1 ? at + 1 : at + 2;
  return [text.slice(0, at + 1), text.slice(after)].filter(
    (part) => part.length >= AMPERSAND_PART_LENGTH_MIN,
  );
}
